package snippet

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"quayside.io/proxy/filter"
	"quayside.io/proxy/nginxconf"
)

// places makes the locations, in the order in which they are asked: that of one path first,
// then what no pattern comes before, the patterns, and the others.
func (w *scripter) places(list []nginxconf.Directive) error {
	type ranked struct {
		filter.ScriptPlace
		rank int
	}
	var all []ranked
	for i := range list {
		d := &list[i]
		if d.Name() != "location" {
			continue
		}
		if l, denies := DeniedPath(d); denies {
			w.denied = append(w.denied, l)
			continue
		}
		p, rank, err := w.locate(d, list)
		if err != nil {
			return at(d, err)
		}
		if rank == hasName {
			w.script.Named, w.known.locations = append(w.script.Named, p), append(w.known.locations, p.Path)
			continue
		}
		p.Internal = slices.ContainsFunc(d.Block, nginxconf.IsNamed("internal"))
		all = append(all, ranked{p, rank})
	}
	slices.SortStableFunc(all, func(a, b ranked) int {
		if a.rank != b.rank {
			return a.rank - b.rank
		}
		return cmp.Compare(len(b.Path), len(a.Path))
	})
	for i, p := range all {
		for _, first := range all[:i] {
			if first.rank == beforePatterns && p.rank == behindPatterns && strings.HasPrefix(p.Path, first.Path) {
				return fmt.Errorf("location %s is below location ^~ %s, and patterns are looked for there", p.Path, first.Path)
			}
		}
		w.script.Places = append(w.script.Places, p.ScriptPlace)
	}
	w.script.Places = append(withoutSlash(w.script.Places), w.script.Places...)
	return nil
}

// locate makes what a location of a list comes to.
func (w *scripter) locate(d *nginxconf.Directive, list []nginxconf.Directive) (p filter.ScriptPlace, rank int, err error) {
	isQuestion, err := w.question(d)
	if w.ofHost && asksInside(d) && !w.isAsked(d, list) { // then it is there for rewrites and errors
		if p, rank, ok := w.innerPassage(d); ok {
			return p, rank, nil
		}
	}
	switch {
	case err != nil:
		return p, 0, err
	case isQuestion && hidden(d, list):
		return p, 0, errors.New("another location may be meant by what leads there: write location = with the one path")
	case isQuestion: // to clients it is not there
		d = &nginxconf.Directive{Words: d.Words, Line: d.Line, Text: d.Text, Block: []nginxconf.Directive{{Words: []string{"internal"}}, {Words: []string{"return", "404"}}}}
	}
	p, rank, leads, err := w.passage(d)
	if !leads {
		p, rank, err = w.place(d)
	}
	p.Asked = isQuestion
	return p, rank, err
}

// These are the ranks of locations.
const (
	onePath = iota
	beforePatterns
	aPattern
	behindPatterns
	hasName // nobody asks for it
)

// place makes a location that answers by itself.
func (w *scripter) place(d *nginxconf.Directive) (p filter.ScriptPlace, rank int, err error) {
	if p, rank, err = w.head(d); err != nil {
		return p, rank, err
	}
	if rank == hasName && moves(d.Block) {
		return p, 0, errors.New("it moves the path, and errors lead to places that answer")
	}
	p.Steps, p.Fields, err = w.inside(d.Block)
	return p, rank, err
}

// head makes a location of what stands before its block.
func (w *scripter) head(d *nginxconf.Directive) (p filter.ScriptPlace, rank int, err error) {
	args := d.Args()
	modifier := ""
	if len(args) == 2 {
		modifier, args = args[0], args[1:]
	}
	if len(args) != 1 {
		return p, 0, errors.New("it is not one path or pattern")
	}
	switch modifier {
	case "=":
		p.Path, p.Exact = args[0], true
	case "^~":
		p.Path, p.First, rank = args[0], true, beforePatterns
	case "":
		p.Path, rank = args[0], behindPatterns
	case "~", "~*":
		rank = aPattern
		if p.Pattern, p.Named, err = w.pattern(args[0], modifier == "~*", false); err != nil {
			return p, 0, err
		}
	default:
		return p, 0, errors.New("it is a kind of location that is not understood")
	}
	switch isNamed := modifier == "" && strings.HasPrefix(p.Path, "@"); {
	case isNamed && w.ofHost:
		rank = hasName
	case isNamed:
		return p, 0, errors.New("nginx takes a location with a name in a server-snippet alone")
	case p.Pattern == nil && !strings.HasPrefix(p.Path, "/"):
		return p, 0, errors.New("its path does not begin with a slash")
	}
	return p, rank, nil
}

// isForAll reports whether a rewrite is one of every path.
func isForAll(d *nginxconf.Directive) bool {
	return slices.Contains([]string{"^", ".*", "^.*$", "^.*", "^/", "^/.*", "^/.*$", "(.*)", "^(.*)", "^(.*)$", "^/(.*)", "^/(.*)$", "/(.*)"}, patternOf(d))
}

// moves reports whether something in a block makes the path another.
func moves(block []nginxconf.Directive) bool {
	return slices.ContainsFunc(block, func(d nginxconf.Directive) bool {
		leaves := slices.Contains([]string{"redirect", "permanent"}, d.Words[len(d.Words)-1])
		return d.Name() == "rewrite" && !leaves || moves(d.Block)
	})
}

// inside makes what stands in a location.
func (w *scripter) inside(block []nginxconf.Directive) (steps []filter.Step, set int, err error) {
	var own fields
	kind, ends := w.kind, false
	undo, err := w.referers(block)
	if err != nil {
		return nil, 0, err
	}
	defer undo()
	for i := range block {
		inner := &block[i]
		switch taken, err := own.take(inner, w.names); {
		case err != nil:
			return nil, 0, fmt.Errorf("of %s: %w", Quoted(inner), err)
		case taken:
		case inner.Name() == "return":
			ends = true
		case inner.Name() == "rewrite" && inner.Words[len(inner.Words)-1] == "break", inner.Name() == "break":
			return nil, 0, fmt.Errorf("of %s: where that leads, it does not answer", Quoted(inner))
		case inner.Name() == "rewrite":
			ends = ends || isForAll(inner)
		case inner.Name() == "client_max_body_size": // that of the path behind counts
		case isStep(inner), inner.Name() == "internal", inner.Name() == validReferers, IsOfLog(strings.Join(inner.Words, " ")):
		case inner.Name() == "default_type" && len(inner.Args()) == 1:
			kind = inner.Words[1]
		default:
			if said, known := on(w.table, inner); !known || !said.Needless {
				return nil, 0, fmt.Errorf("what it does is not answering alone: %s", Quoted(inner))
			}
		}
	}
	if !ends {
		return nil, 0, errors.New("it does not answer every request")
	}
	set = w.fieldsOf(own)
	w.around = &surroundings{own.under(&w.own), set}
	steps, err = w.stepsOf(block, kind)
	w.around = nil
	return steps, set, err
}

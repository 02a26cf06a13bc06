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
		p, rank, err := w.place(d)
		if err != nil {
			return at(d, err)
		}
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
	return nil
}

// These are the ranks of locations.
const (
	onePath = iota
	beforePatterns
	aPattern
	behindPatterns
)

// place makes a location that answers by itself.
func (w *scripter) place(d *nginxconf.Directive) (p filter.ScriptPlace, rank int, err error) {
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
	if p.Pattern == nil && !strings.HasPrefix(p.Path, "/") {
		return p, 0, errors.New("its path does not begin with a slash")
	}
	p.Steps, p.Fields, err = w.inside(d.Block)
	return p, rank, err
}

// inside makes what stands in a location.
func (w *scripter) inside(block []nginxconf.Directive) (steps []filter.Step, set int, err error) {
	var own fields
	kind, ends := w.kind, false
	for i := range block {
		inner := &block[i]
		switch taken, err := own.take(inner, w.names); {
		case err != nil:
			return nil, 0, fmt.Errorf("of %s: %w", Quoted(inner), err)
		case taken:
		case inner.Name() == "return":
			ends = true
		case inner.Name() == "rewrite" && !slices.Contains([]string{"redirect", "permanent"}, inner.Words[len(inner.Words)-1]), inner.Name() == "break":
			return nil, 0, fmt.Errorf("of %s: where that leads, it does not answer", Quoted(inner))
		case isStep(inner), IsOfLog(strings.Join(inner.Words, " ")):
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
	w.placed = true
	steps, err = w.stepsOf(block, kind)
	w.placed = false
	return steps, w.fieldsOf(own), err
}

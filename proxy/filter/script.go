package filter

import (
	"regexp"
	"slices"

	"quayside.io/proxy/exchange"
)

// Script is what directives of nginx's module rewrite say that stand in one place, in their
// order. It is read once and compiled; what a variable brings in is not read again.
type Script struct {
	// OfHost says that it stands for hosts: a path that has been moved does not come to it
	// again, and Places are looked at behind Steps and not before.
	OfHost bool
	Steps  []Step
	Places []ScriptPlace
	// Fields are sets of what is done to the fields of responses. The first is that of
	// requests for which no If and no ScriptPlace says another.
	Fields [][]FieldChange
	// Errors answer in the place of what is wrong, and Named are the locations that nobody
	// but they lead to, each with its name as Path.
	Errors ErrorPages
	Named  []ScriptPlace
	// Rates and Concurrency bound what is asked; nil: nothing does.
	Rates       []Rate
	Concurrency *Concurrency
	// Except refuses some methods; nil: none.
	Except *Except
	// Answers are variables that are set once an authentication service has answered, whatever
	// it says.
	Answers []Set
	// Substitution is of the bodies of responses; nil: they stay.
	Substitution *Substitution
	// Refuses says that it refuses some requests.
	Refuses bool
	// Groups says that what patterns find stands in some text.
	Groups bool
}

// IsEmpty reports whether s does nothing.
func (s *Script) IsEmpty() bool {
	return len(s.Steps)+len(s.Places)+len(s.Answers)+len(s.Rates)+len(s.Errors.Pages)+len(s.Named) == 0 && !s.Errors.Intercepts && s.Concurrency == nil && s.Except == nil && s.Substitution == nil && !slices.ContainsFunc(s.Fields, func(set []FieldChange) bool { return slices.ContainsFunc(set, FieldChange.acts) })
}

// FieldsAlone returns what s does to the fields of responses of which no If and no ScriptPlace
// says another, as a script; nil: nothing.
func (s *Script) FieldsAlone() *Script {
	if len(s.Fields) == 0 || !slices.ContainsFunc(s.Fields[0], FieldChange.acts) {
		return nil
	}
	return &Script{OfHost: s.OfHost, Fields: s.Fields[:1]}
}

// Except has addresses checked of requests with other methods: nginx's limit_except.
type Except struct {
	// Methods may be anybody's. With GET goes HEAD.
	Methods []string
	Access  Access
}

func (e *Except) filter() Filter {
	passes := access(&e.Access)
	return Filter{Request: func(ex *exchange.Exchange) bool {
		free := slices.ContainsFunc(e.Methods, func(m string) bool {
			return string(ex.Request.Method) == m || m == "GET" && string(ex.Request.Method) == "HEAD"
		})
		if free || passes(ex).status == 0 {
			return true
		}
		ex.Answer(403, "403 Forbidden: the method is not for everybody\n")
		return false
	}}
}

// ScriptPlace is a location that answers by itself.
type ScriptPlace struct {
	// Path is the one path of the place where Exact is set, and what its paths begin with
	// where there is no Pattern. First says that it comes before patterns then.
	Path  string
	Exact bool
	First bool
	// Yields says that a rule of the one path comes before it.
	Yields bool
	// Internal says that it is there for nobody who asks for it, but for paths that were moved,
	// and Asked that it is there for questions alone, as those of auth_request.
	Internal bool
	Asked    bool
	Pattern  *regexp.Regexp
	Named    []Named // groups of Pattern
	// Steps end by an answer, whatever the request.
	Steps  []Step
	Fields int
}

// beats reports whether nginx prefers p to the rule of a route for the paths of both.
func (p *ScriptPlace) beats(at *Place) bool {
	switch {
	case p.Exact:
		return !p.Yields || !at.Exact
	case at.Exact:
		return false
	}
	return p.Pattern != nil || at.Pattern != nil && p.First || at.Pattern == nil && len(p.Path) > len(at.Path)
}

// isOf reports whether a path is one of p.
func (p *ScriptPlace) isOf(path []byte) bool {
	switch {
	case p.Exact:
		return string(path) == p.Path
	case p.Pattern != nil:
		return p.Pattern.Match(path)
	}
	return len(path) >= len(p.Path) && string(path[:len(p.Path)]) == p.Path
}

// Passage is the number of the route of the script's own that p leads to; 0: it leads to none.
func (p *ScriptPlace) Passage() int {
	for _, step := range p.Steps {
		if pass, is := step.(*Pass); is {
			return pass.Passage
		}
	}
	return 0
}

// Step is one directive of a script.
type Step interface {
	// runner returns what does it for the requests of a route.
	runner(tools *Tools) runner
}

// runner does what a step says to one request.
type runner func(ex *exchange.Exchange) outcome

// outcome is what follows.
type outcome int

const (
	goesOn      outcome = iota // the next step
	ends                       // nothing else of the script
	hasAnswered                // nothing else at all
)

// maxPasses is how often a path may be moved before that looks endless, as in nginx.
const maxPasses = 10

// script runs s for the requests of a route. Where the path has been moved, whoever runs the
// chain looks for the route of the new one, unless behind is nginx's last word on the path,
// which stays with its place then.
func script(s *Script, behind *Rewrite, tools *Tools) Filter {
	do, find := sequence(runners(s.Steps, tools)), placeFinder(s, tools)
	if !s.OfHost && behind != nil {
		do = s.staying(do, behind)
	}
	order := [2]runner{find, do}
	if s.OfHost {
		order = [2]runner{do, find}
	}
	return Filter{Request: func(ex *exchange.Exchange) bool {
		if s.OfHost && ex.Script.Passed {
			if ex.Script.Unasked {
				ex.Answer(404, "404 Not Found\n")
			}
			return !ex.Script.Unasked
		}
		if s.OfHost && ex.Script.Groups == nil { // the pattern of the path is looked for behind it
			ex.Script.Groups = [][]byte{}
		}
		for i, part := range order {
			if s.OfHost && i == 0 && ex.Script.Passes > 0 && !ex.Script.Fresh {
				continue
			}
			switch {
			case part(ex) == hasAnswered:
				ex.Script.Moved = false // it goes nowhere
				if s.OfHost {           // before it came to the route's own
					ex.Script.Fields[0] = exchange.NoFields
				}
				return false
			case moves(ex):
				return false
			}
		}
		if s.OfHost && tools.Place.Pattern != nil {
			ex.Script.Groups = nil
		}
		return true
	}}
}

// staying is do, behind whose end a path is rewritten again, so that it is not moved.
func (s *Script) staying(do runner, behind *Rewrite) runner {
	return func(ex *exchange.Exchange) outcome {
		if o := do(ex); o != goesOn || !s.Groups && !ex.Script.Moved {
			return o
		}
		path := readByNginx(ex.Request.Path)
		found := behind.Pattern == nil || behind.Pattern.Match(path)
		ex.Script.Moved = ex.Script.Moved && !found
		if s.Groups && behind.Pattern != nil {
			keepGroups(&ex.Script, behind.Pattern, path, nil, found)
		}
		return goesOn
	}
}

// placeFinder answers what is for one of the places of s, which stand in the order in which
// they are asked.
func placeFinder(s *Script, tools *Tools) runner {
	var places []*ScriptPlace
	var steps []runner
	for i := range s.Places {
		if p := &s.Places[i]; p.beats(&tools.Place) {
			places, steps = append(places, p), append(steps, sequence(runners(p.Steps, tools)))
		}
	}
	return func(ex *exchange.Exchange) outcome {
		if len(places) == 0 {
			return goesOn
		}
		path := readByNginx(ex.Request.Path)
		i := slices.IndexFunc(places, func(p *ScriptPlace) bool { return p.isOf(path) })
		if i < 0 {
			return goesOn
		}
		p := places[i]
		ex.Script.Fields[kindOf(s.OfHost)] = p.Fields
		ex.Script.Unasked = p.Internal && ex.Script.Passes == 0 && ex.Script.Steered == 0 && !ex.Script.Paged
		if ex.Script.Unasked && p.Passage() == 0 {
			ex.Answer(404, "404 Not Found\n")
			return hasAnswered
		}
		if p.Pattern != nil {
			keepGroups(&ex.Script, p.Pattern, path, p.Named, true)
		}
		o := steps[i](ex)
		if o == hasAnswered || ex.Script.Moved {
			return o
		}
		ex.Answer(404, "404 Not Found\n") // nginx looks for a file behind a break
		return hasAnswered
	}
}

// kindOf is which of Scripted.Fields are those of the script of a host, or of a place.
func kindOf(ofHost bool) int {
	if ofHost {
		return 1
	}
	return 0
}

// moves reports whether the path has been moved, and counts it.
func moves(ex *exchange.Exchange) bool {
	s := &ex.Script
	if !s.Moved {
		return false
	}
	s.Fresh = false
	if s.Passage > 0 { // the path stays
		return true
	}
	if s.Passes++; s.Passes > maxPasses {
		s.Moved = false
		ex.Answer(500, "500 Internal Server Error: the path is rewritten again and again\n")
		s.Paged, s.PagedAs = true, 0 // as nginx has no page for that
	}
	return true
}

func runners(steps []Step, tools *Tools) []runner {
	list := make([]runner, len(steps))
	for i, s := range steps {
		list[i] = s.runner(tools)
	}
	return list
}

func run(steps []runner, ex *exchange.Exchange) outcome {
	for _, step := range steps {
		if o := step(ex); o != goesOn {
			return o
		}
	}
	return goesOn
}

func sequence(steps []runner) runner {
	return func(ex *exchange.Exchange) outcome { return run(steps, ex) }
}

// scriptGuard refuses what s refuses, and does nothing else.
func scriptGuard(s *Script, tools *Tools) Filter {
	request := script(s, nil, tools).Request
	return Filter{Request: func(ex *exchange.Exchange) bool {
		probe := exchange.Exchange{Request: ex.Request}
		request(&probe)
		if probe.Response.Status < 400 {
			return true
		}
		ex.Answer(probe.Response.Status, string(probe.Response.Text))
		return false
	}}
}

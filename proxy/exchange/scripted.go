package exchange

import "cmp"

// Scripted is what the scripts of a route have made of a request: nginx's set, if, rewrite and
// break. The zero value is of one that no script has seen.
type Scripted struct {
	// Values are those of the variables that have been set.
	Values [][]byte
	// Groups are what the last pattern has found, the whole of it first; nil: none was looked
	// for.
	Groups [][]byte
	// Fields are the sets of fields that responses get, by the script of the route and by
	// that of the host.
	Fields [2]int
	// Moved says that the path is another now, so that the handler has to find the route for
	// that, and Passes how often it was.
	Moved  bool
	Passes int
	// Passage, unless 0, is the number of the route of the script's own that it is moved to,
	// and Passed says that it has come to one, so that the script of the host has done its part.
	// Unasked says that the one is there for nobody who asks for it, as a client did.
	Passage int
	Passed  bool
	Unasked bool
	// Detour, unless 0, is the number of who is asked in the place of the route's backend, and
	// of Chosen. That is where a variable says so, whatever path Detour has.
	Detour, Chosen int
	// Paged says that an error page answers in the place of what was wrong, and PagedAs with
	// which status; 0: its own. Before is the request as it came to a route whose error pages
	// lead to paths, and behind such a page what the route had made of it; nil: it has none.
	Paged   bool
	PagedAs int
	Before  *Exchange
	// To is the path to which the backend that was asked leads; empty: it answers. Steered is
	// how often one has led elsewhere, and Kept are the fields that stay of their responses.
	To      string
	Steered int
	Kept    []Field
	// Fresh says that the path is that of such a page, which no script has seen.
	Fresh bool
	// Ended says that the path is not rewritten any more, and Broke that one that was rewritten
	// is to be sent on as it is.
	Ended bool
	Broke bool
	// Target is that of the request where a backend is asked for another.
	Target []byte
}

// Elsewhere is the number of who is asked in the place of the route's backend; 0: nobody is.
func (s *Scripted) Elsewhere() int { return cmp.Or(s.Detour, s.Chosen) }

// NoFields is no set of fields.
const NoFields = -1

// Set gives a variable its value.
func (s *Scripted) Set(variable int, value []byte) {
	for len(s.Values) <= variable {
		s.Values = append(s.Values, nil)
	}
	s.Values[variable] = value
}

// Again makes s ready for the route of a path that has been moved, of which Values are.
func (s *Scripted) Again() {
	*s = Scripted{Values: s.Values, Groups: s.Groups, Passes: s.Passes, Paged: s.Paged, PagedAs: s.PagedAs, Steered: s.Steered, Kept: s.Kept, Fresh: s.Fresh, Broke: s.Broke}
}

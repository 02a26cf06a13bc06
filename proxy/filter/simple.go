package filter

import (
	"regexp"
	"regexp/syntax"

	"quayside.io/proxy/exchange"
)

// Matcher tells which paths a pattern matches.
type Matcher struct {
	re     *regexp.Regexp
	simple *simple // nil: re has to be asked
}

// NewMatcher returns the Matcher of a pattern.
func NewMatcher(re *regexp.Regexp) *Matcher { return &Matcher{re, simplify(re)} }

// Match reports whether a normalised path matches.
func (m *Matcher) Match(path []byte) bool {
	if m.simple != nil {
		var buf [2 * 10]int
		if _, matches, ok := m.simple.match(buf[:0], path); ok {
			return matches
		}
	}
	return m.re.Match(path)
}

// simple is a pattern as nearly all rewrites have it: "^", letters, then perhaps
// "(/|$)", and at last perhaps "(.*)". It is matched without package regexp, which
// allocates its captures and takes ten times as long.
type simple struct{ steps []step }

type step struct {
	kind stepKind
	text string // of literal
	fold bool   // literal in any case
}

type stepKind uint8

const (
	literal    stepKind = iota
	slashOrEnd          // (/|$)
	rest                // (.*), the last
)

// simplify returns what re means, or nil if that takes a real matcher.
func simplify(re *regexp.Regexp) *simple {
	tree, err := syntax.Parse(re.String(), syntax.Perl)
	if err != nil || tree.Op != syntax.OpConcat || tree.Sub[0].Op != syntax.OpBeginText {
		return nil
	}
	s := &simple{}
	for i, sub := range tree.Sub[1:] {
		last := i == len(tree.Sub)-2
		switch {
		case sub.Op == syntax.OpLiteral:
			for _, r := range sub.Rune {
				if r >= 0x80 {
					return nil
				}
			}
			s.steps = append(s.steps, step{literal, string(sub.Rune), sub.Flags&syntax.FoldCase != 0})
		case sub.Op == syntax.OpCapture && isSlashOrEnd(sub.Sub[0]):
			s.steps = append(s.steps, step{kind: slashOrEnd})
		case sub.Op == syntax.OpCapture && isRest(sub.Sub[0]) && last:
			s.steps = append(s.steps, step{kind: rest})
		default:
			return nil
		}
	}
	return s
}

func isSlashOrEnd(re *syntax.Regexp) bool {
	return re.Op == syntax.OpAlternate && len(re.Sub) == 2 &&
		re.Sub[0].Op == syntax.OpLiteral && string(re.Sub[0].Rune) == "/" && re.Sub[1].Op == syntax.OpEndText
}

func isRest(re *syntax.Regexp) bool {
	return re.Op == syntax.OpStar && re.Flags&syntax.NonGreedy == 0 && re.Sub[0].Op == syntax.OpAnyCharNotNL
}

// match appends to found what FindSubmatchIndex returns. ok is false if only the
// real matcher can tell: letters beyond ASCII may be the same as some within.
func (s *simple) match(found []int, path []byte) (indexes []int, matches, ok bool) {
	for _, c := range path {
		if c >= 0x80 || c == '\n' {
			return found, false, false
		}
	}
	at := 0
	found = append(found, 0, 0)
	for i := range s.steps {
		st := &s.steps[i]
		switch {
		case st.kind == rest:
			found = append(found, at, len(path))
			at = len(path)
		case st.kind == slashOrEnd && at == len(path):
			found = append(found, at, at)
		case st.kind == slashOrEnd && path[at] == '/':
			found = append(found, at, at+1)
			at++
		case st.kind == slashOrEnd || !st.begins(path[at:]):
			return found, false, true
		default:
			at += len(st.text)
		}
	}
	found[1] = at
	return found, true, true
}

// begins reports whether b begins with a literal.
func (st *step) begins(b []byte) bool {
	n := len(st.text)
	if len(b) < n {
		return false
	}
	return st.fold && exchange.EqualFold(b[:n], st.text) || string(b[:n]) == st.text
}

package route

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"sort"
	"strings"
)

// The prefixes of annotations. The keys behind them are the same; where an Ingress
// has a key under both, ours wins.
const (
	NginxPrefix = "nginx.ingress.kubernetes.io/"
	OwnPrefix   = "ingress.quayside.io/"
)

// ProblemsAnnotation is no option: the controller writes there what is wrong with an
// Ingress, which has no conditions for that. No route depends on it.
const ProblemsAnnotation = OwnPrefix + "problems"

// effect is what an option does to the routes of its Ingress.
type effect int

// The effects, from harmless to severe.
const (
	applied effect = iota // parsed and obeyed
	noOp                  // nothing to do here by design: accepted in silence
	ignored               // not obeyed yet: reported, and the route serves
)

// risk is what the author of an Ingress may do to others with an option, as
// ingress-nginx grades it.
type risk string

const (
	riskLow      risk = "Low"
	riskMedium   risk = "Medium"
	riskHigh     risk = "High"
	riskCritical risk = "Critical"
)

// scope is how far an annotation reaches.
type scope string

const (
	ofLocation scope = "location" // each path of its Ingress
	ofIngress  scope = "Ingress"  // its Ingress as a whole
	ofHost     scope = "host"     // all paths of its hosts, those of other Ingresses too
)

// option is one annotation.
type option struct {
	key    string // without prefix
	scope  scope
	unset  string // the value that ingress-nginx goes by where there is none; empty: no value says it
	risk   risk
	effect effect
	doc    string // what it does in ingress-nginx; quoted where it does nothing here
	differ string // how what it does here is not the same; empty: it is
	ours   bool   // ingress-nginx does not have it
	guard  bool   // it decides who may pass: a value that is not understood closes the route

	// parse obeys an applied option.
	parse func(s *settings, value string) error
	// matters reports whether the value asks for anything. Nil: if not empty.
	matters func(value string) bool
}

// redirect is when a request without TLS is sent to https.
type redirect int

const (
	redirectNever redirect = iota
	redirectIfTLS          // if the host has a tls entry
	redirectAlways
)

// finding is a Problem that does not know its object yet.
type finding struct{ reason, message string }

// parseOptions reads the annotations of one Ingress. Findings are in the order
// of the keys. s is what an Ingress without annotations has, and then what this one has.
func parseOptions(options func() []option, annotations map[string]string, s *settings, r refs) []finding {
	var findings []finding
	var room [usualAnnotations]string
	names, ours := room[:0], false
	for name := range annotations {
		if name == ProblemsAnnotation {
			continue
		}
		names, ours = append(names, name), ours || strings.HasPrefix(name, OwnPrefix)
	}
	slices.SortFunc(names, byTurn)
	for _, name := range names {
		key, own := strings.CutPrefix(name, OwnPrefix)
		if !own {
			var theirs bool
			if key, theirs = strings.CutPrefix(name, NginxPrefix); !theirs {
				continue
			}
			if ours {
				if _, both := annotations[OwnPrefix+key]; both {
					continue
				}
			}
		}
		if key == "server-snippet" {
			s.snippets.ahead = annotation(annotations, "configuration-snippet")
		}
		value := strings.TrimSpace(annotations[name])
		table := options()
		i, ok := sort.Find(len(table), func(i int) int { return strings.Compare(key, table[i].key) })
		if !ok {
			if f, ok := unknownOption(name, key, value, s); ok {
				findings = append(findings, f)
			}
			continue
		}
		if f, ok := table[i].apply(name, value, s); ok {
			findings = append(findings, f)
		}
	}
	return append(findings, s.finish(r)...)
}

// annotation is what an Ingress says of an option: that with our prefix counts, if there is one.
func annotation(all map[string]string, key string) string {
	if own, is := all[OwnPrefix+key]; is {
		return own
	}
	return all[NginxPrefix+key]
}

// byTurn compares annotations by their names, save that a server-snippet comes before the
// configuration-snippet, which may have its variables.
func byTurn(a, b string) int { return strings.Compare(turnOf(a), turnOf(b)) }

func turnOf(name string) string {
	if before, is := strings.CutSuffix(name, "/server-snippet"); is {
		return before + "/configuration-"
	}
	return name
}

// usualAnnotations is how many there is room for without asking for memory.
const usualAnnotations = 16

// SnippetHelp ends a Problem about a snippet: where to look for what it did.
const SnippetHelp = "; quayside migrate names what replaces it"

// help is what to do about an option that has no effect, or closes the route.
func (o *option) help() string {
	if o.risk == riskCritical {
		return SnippetHelp
	}
	return ""
}

// unknownOption reports a key that the table lacks. One that looks like a guard
// closes the route: a typing error must not open a door.
func unknownOption(name, key, value string, s *settings) (finding, bool) {
	guard := strings.HasPrefix(key, "auth") || strings.Contains(key, "source-range")
	if guard && value != "" {
		return s.close(name, "is not known, but looks as if it guards access"), true
	}
	return finding{UnknownAnnotation, fmt.Sprintf("annotation %s is not known and has no effect; remove it or correct its spelling", name)}, true
}

func (o *option) apply(name, value string, s *settings) (finding, bool) {
	if o.matters != nil && !o.matters(value) || o.matters == nil && value == "" {
		return finding{}, false
	}
	guards := o.guard || o.risk == riskCritical && guardsAccess(value)
	if guards && !o.guard && o.effect != applied {
		return s.closeRaw(name, ""), true
	}
	if why := s.gate.refuses(o, value); why != "" && o.effect == applied {
		if guards {
			return s.close(name, "is refused: "+why), true
		}
		return finding{InvalidAnnotation, fmt.Sprintf("annotation %s has no effect: %s", name, why)}, true
	}
	switch o.effect {
	case applied:
		s.touched = true
		return o.judge(o.parse(s, value), name, guards, s)
	case ignored:
		return finding{UnsupportedAnnotation, fmt.Sprintf("annotation %s is not supported and has no effect (%s)", name, o.doc) + o.help()}, true
	}
	return finding{}, false
}

// judge is what comes of an applied option, of which err says what is wrong.
func (o *option) judge(err error, name string, guards bool, s *settings) (finding, bool) {
	snippet, partial := o.risk == riskCritical && !o.guard, errors.As(err, new(partly))
	switch {
	case err == nil:
		return finding{}, false
	case o.guard:
		f := s.close(name, "is not understood: "+err.Error())
		f.message += o.help()
		return f, true
	case partial && (snippet || !guards):
		return finding{InvalidAnnotation, fmt.Sprintf("annotation %s acts in part: %v", name, err)}, true
	case guards:
		return s.closeRaw(name, ": "+err.Error()), true
	case snippet:
		return finding{UnsupportedAnnotation, fmt.Sprintf("annotation %s has no effect: %v", name, err) + o.help()}, true
	}
	return finding{InvalidAnnotation, fmt.Sprintf("annotation %s has no effect: %v", name, err)}, true
}

// close shuts the routes of the Ingress. The first reason is the one that
// clients see.
func (s *settings) close(name, why string) finding {
	if s.closed == "" {
		s.closed = fmt.Sprintf("annotation %s %s", name, why)
	}
	s.shut = true
	s.clients.unclear = s.clients.unclear || strings.Contains(name, "auth-tls-")
	return finding{RouteClosed, fmt.Sprintf("annotation %s %s, so every request gets a 503; mend that, or remove the annotation if the route may be open", name, why)}
}

// guardsRaw is why a snippet closes that cannot be obeyed.
const guardsRaw = "guards access by raw nginx configuration that is not obeyed"

// closeRaw is close because of a snippet that cannot be obeyed; why ends the sentence.
func (s *settings) closeRaw(name, why string) finding {
	f := s.close(name, guardsRaw+why)
	f.message += SnippetHelp
	return f
}

// closeFor is close because of what an option names, of which err says what is
// wrong after the words of what.
func (s *settings) closeFor(name, what string, err error) finding {
	shut := s.shut
	f := s.close(name, what+err.Error())
	if errors.Is(err, errUnread) {
		f.reason, s.shut = UnreadReference, shut
		f.message = fmt.Sprintf("annotation %s %s%v: a proxy that cannot read it answers every request with a 503", name, what, err)
	}
	return f
}

// always is for options whose empty value is a bad one.
func always(string) bool { return true }

// isOn is for switches: a guard that is switched off asks for nothing.
func isOn(value string) bool { return !slices.Contains([]string{"", "false", "off", "none"}, value) }

// guardsAccess looks for directives of nginx that decide who may pass, or that withhold what
// a rule would lead to, as "location = /metrics { return 404; }" does. A snippet is never
// executed, so a route that relied on one would stand open.
func guardsAccess(snippet string) bool {
	for range guardWords(snippet) {
		return true
	}
	return strings.Contains(snippet, " internal;")
}

// guardWords are the words by which a snippet decides that.
func guardWords(snippet string) iter.Seq[string] {
	return func(yield func(string) bool) {
		before := ""
		for word := range strings.FieldsFuncSeq(snippet, func(r rune) bool {
			return r != '_' && (r < 'a' || 'z' < r) && (r < '0' || '9' < r)
		}) {
			guards := slices.Contains([]string{"allow", "deny", "satisfy", "401", "403", "ssl_verify_client", "access_by_lua_block", "access_by_lua_file"}, word) ||
				strings.HasPrefix(word, "auth_") || strings.HasPrefix(word, "limit_except") ||
				before == "return" && slices.Contains([]string{"404", "405", "444"}, word)
			if guards && !yield(word) {
				return
			}
			before = word
		}
	}
}

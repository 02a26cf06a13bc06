package snippet

import (
	"fmt"
	"slices"
	"strings"
)

// Setting is an option of an Ingress, without the prefix of its annotation, with its value.
type Setting struct{ Key, Value string }

// Advice is what does here what a directive of nginx does.
type Advice struct {
	Options  []Setting // of the Ingress
	Global   []Setting // of the proxy's ConfigMap, for all Ingresses
	Remark   string    // beside them, or why there are none
	Needless bool      // nothing has to be written, and Remark says why
	Skipped  bool      // nothing does the same, which Remark says, and the rest of a snippet is obeyed without it
}

// Use returns one of options, each a key and a value.
func Use(pairs ...string) (a Advice) {
	for i := 0; i+1 < len(pairs); i += 2 {
		a.Options = append(a.Options, Setting{pairs[i], pairs[i+1]})
	}
	return a
}

// UseForAll returns one of an option of the proxy.
func UseForAll(key, value string) Advice { return Advice{Global: []Setting{{key, value}}} }

// None returns one that says why nothing does the same.
func None(format string, args ...any) Advice { return Advice{Remark: fmt.Sprintf(format, args...)} }

// Needless returns one that says why nothing is needed.
func Needless(why string) Advice { return Advice{Remark: why, Needless: true} }

// Skip returns one that says why nothing does the same, of what a snippet can do without.
func Skip(why string) Advice { return Advice{Remark: why, Skipped: true} }

// But returns a with a remark, if it names options.
func (a Advice) But(remark string) Advice {
	if len(a.Options)+len(a.Global) > 0 {
		a.Remark = remark
	}
	return a
}

// And returns a with what b asks for, too: of options that take lines, more lines.
func (a Advice) And(b Advice) Advice {
	a.Options = slices.Clone(a.Options)
	for _, o := range b.Options {
		at := slices.IndexFunc(a.Options, func(have Setting) bool { return have.Key == o.Key })
		switch {
		case at >= 0 && slices.Contains(LineKeys(), o.Key):
			a.Options[at].Value += "\n" + o.Value
		case !slices.Contains(a.Options, o):
			a.Options = append(a.Options, o)
		}
	}
	a.Global = append(a.Global, b.Global...)
	if !strings.Contains(a.Remark, b.Remark) {
		a.Remark = strings.TrimPrefix(a.Remark+"; "+b.Remark, "; ")
	}
	return a
}

// Repeats reports whether something is said twice for which there is one place: an option, or
// a field of responses, which nginx sends twice.
func (a *Advice) Repeats() bool {
	seen := map[string]bool{}
	again := func(what string) bool {
		before := seen[what]
		seen[what] = true
		return before
	}
	for _, o := range a.Options {
		switch {
		case o.Key == "server-alias": // one more name
		case !slices.Contains(LineKeys(), o.Key):
			if again(o.Key) {
				return true
			}
		case o.Key == "response-headers" || o.Key == "success-headers":
			for line := range strings.Lines(o.Value) {
				if name, _, _ := strings.Cut(line, ":"); again(strings.ToLower(name) + ":") {
					return true
				}
			}
		}
	}
	return false
}

// LineKeys are the options that take lines.
func LineKeys() []string {
	return []string{"request-headers", "response-headers", "success-headers", "proxy-cookie-flags"}
}

// PlainKeys are those that may stand in for a snippet: they decide nothing about who passes
// or which backend a request goes to.
func PlainKeys() []string {
	return append(LineKeys(), "enable-access-log", "proxy-ssl-name", "proxy-ssl-server-name", "proxy-ssl-protocols", "server-alias", "limit-rate", "limit-rate-after", "proxy-cookie-path", "proxy-cookie-domain", "x-forwarded-prefix")
}

// IsPlain reports whether all that a names may stand in for a snippet.
func (a *Advice) IsPlain() bool {
	return len(a.Options) > 0 && len(a.Global) == 0 && !slices.ContainsFunc(a.Options, func(o Setting) bool { return !slices.Contains(PlainKeys(), o.Key) })
}

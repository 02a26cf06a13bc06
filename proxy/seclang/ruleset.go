package seclang

import (
	"cmp"
	"errors"
	"slices"
	"strings"
)

// Engine is what becomes of a request that rules object to.
type Engine string

// The engines, in the words of SecRuleEngine.
const (
	On            Engine = "On"            // it is refused
	DetectionOnly Engine = "DetectionOnly" // it is logged, and passes
	Off           Engine = "Off"           // nobody looks
)

// RuleSet is the rules of a firewall. It is comparable: equal ones are the same
// firewall. The zero value detects nothing, beyond requests that cannot be parsed.
type RuleSet struct {
	Engine Engine // empty: DetectionOnly
	// Core adds the OWASP core rules.
	Core bool
	// Before are directives, one per line, that come before the core rules; After
	// take away from what was there before them.
	Before, After string
	Body          Body
}

// Choice is what a snippet says to a question of yes or no.
type Choice int8

// The choices. What an Ingress says counts before what all of them are told, so to say
// nothing is one of its own.
const (
	Unsaid Choice = iota
	No
	Yes
)

// Body is what is looked at of requests' bodies.
type Body struct {
	// Unseen leaves bodies alone, if Yes.
	Unseen Choice
	// Limit is the largest body in bytes, and Fields the largest without the files of a
	// form. 0: DefaultLimit, DefaultFields.
	Limit, Fields int
	// Partial looks at the beginning of larger ones, if Yes; they are refused else.
	Partial Choice
}

// The limits of bodies in bytes, as the configuration that ModSecurity recommends has
// them, and how far they may be raised.
const (
	DefaultLimit  = 13107200
	DefaultFields = 131072
	MaxLimit      = 32 << 20
	MaxFields     = 1 << 20
)

// State is the engine that is in force.
func (r RuleSet) State() Engine { return cmp.Or(r.Engine, DetectionOnly) }

// MaxBody and MaxFields are the limits in force.
func (r RuleSet) MaxBody() int { return cmp.Or(r.Body.Limit, DefaultLimit) }

// MaxFields is the largest body without files.
func (r RuleSet) MaxFields() int { return min(cmp.Or(r.Body.Fields, DefaultFields), r.MaxBody()) }

// With returns r with what o adds to it and says otherwise.
func (r RuleSet) With(o RuleSet) (RuleSet, error) {
	both := RuleSet{
		Engine: cmp.Or(o.Engine, r.Engine),
		Core:   r.Core || o.Core,
		Before: r.Before + o.Before,
		After:  r.After + o.After,
		Body: Body{
			Unseen: cmp.Or(o.Body.Unseen, r.Body.Unseen),
			Limit:  cmp.Or(o.Body.Limit, r.Body.Limit), Fields: cmp.Or(o.Body.Fields, r.Body.Fields),
			Partial: cmp.Or(o.Body.Partial, r.Body.Partial),
		},
	}
	theirs := r.ids()
	for _, id := range o.ids() {
		if slices.Contains(theirs, id) {
			return RuleSet{}, errors.New("the id " + id + " is that of a rule of the proxy-wide options")
		}
	}
	return both, nil
}

// ids are those of the rules.
func (r RuleSet) ids() (ids []string) {
	for line := range strings.Lines(r.Before) {
		if _, rest, ok := strings.Cut(line, `"id:`); ok {
			id, _, _ := strings.Cut(rest, ",")
			ids = append(ids, strings.TrimRight(id, "\"\n"))
		}
	}
	return ids
}

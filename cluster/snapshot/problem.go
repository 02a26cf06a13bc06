package snapshot

import (
	"cmp"
	"slices"
)

// Ref names any object of the cluster, or a file or node where there is none.
type Ref struct {
	Kind string // "Service", "Ingress", "IPAddressPool", "File", …
	Key
}

// String returns "Kind namespace/name".
func (r Ref) String() string { return r.Kind + " " + r.Key.String() }

// MarshalText is String, for JSON.
func (r Ref) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// Problem is one thing that is wrong, reported to the person who can fix it: the
// owner of Object. It becomes an Event, a condition where the type has them,
// and a line of `quayside status`.
type Problem struct {
	Object Ref `json:"object"`
	// Reason is CamelCase from a fixed list of the package that found it; it is
	// the reason of the Event and the label of quayside_problems.
	Reason string `json:"reason"`
	// Message is a sentence that says what is wrong, where, and what to do.
	Message string `json:"message"`
}

// String returns "Kind namespace/name: Reason: Message".
func (p Problem) String() string {
	return p.Object.String() + ": " + p.Reason + ": " + p.Message
}

// Compare orders problems by object, then reason, then message.
func (p Problem) Compare(o Problem) int {
	return cmp.Or(
		cmp.Compare(p.Object.Kind, o.Object.Kind),
		p.Object.Key.Compare(o.Object.Key),
		cmp.Compare(p.Reason, o.Reason),
		cmp.Compare(p.Message, o.Message))
}

// Distinct returns problems in order, each once. It is never nil, so that JSON
// shows an empty list.
func Distinct(problems []Problem) []Problem {
	sorted := slices.AppendSeq(make([]Problem, 0, len(problems)), slices.Values(problems))
	slices.SortFunc(sorted, Problem.Compare)
	return slices.Compact(sorted)
}

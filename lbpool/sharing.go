package lbpool

import (
	"cmp"
	"fmt"
	"slices"
)

// Holder is who has an address.
type Holder struct {
	// Realm is the namespace. Sharing beyond it needs both sides' Admits.
	Realm string
	// Name within the realm; both together name it to people.
	Name string
	// Sharing says which others may share its address; nil: none.
	*Sharing
}

// Sharing is what holders of one address must agree about.
type Sharing struct {
	// Key must be the same.
	Key string
	// Admits are other realms whose holders may join; "*" is any.
	Admits []string
	// Ports the holder listens on, in the order of Port.Compare; no two holders
	// may listen on one.
	Ports []Port
	// Backend must be equal: empty where any node can take the traffic, else
	// what decides which nodes can.
	Backend string
}

// String returns "team-b/web".
func (h *Holder) String() string {
	if h.Realm == "" {
		return h.Name
	}
	return h.Realm + "/" + h.Name
}

// Port is one port of a holder.
type Port struct {
	Protocol string
	Number   int32
}

// String returns "TCP/80".
func (p Port) String() string { return fmt.Sprintf("%s/%d", p.Protocol, p.Number) }

// Compare orders by protocol, then number: -1, 0 or 1.
func (p Port) Compare(o Port) int {
	return cmp.Or(cmp.Compare(p.Protocol, o.Protocol), cmp.Compare(p.Number, o.Number))
}

// Clash says why h and o cannot hold one address together at all, seen from h, as the
// end of a sentence about o ("…, which does not share"), or "".
func (h *Holder) Clash(o *Holder) string {
	switch {
	case o.Sharing == nil:
		return "which does not share it"
	case h.Sharing == nil:
		return "which shares it only under its sharing key " + quote(o.Key)
	case h.Key != o.Key:
		return "which shares it under another key, " + quote(o.Key)
	case h.Backend != o.Backend:
		return "which does not have the same externalTrafficPolicy and, with Local, the same selector"
	}
	if p, both := h.common(o); both {
		return "which already uses port " + p.String() + " of it"
	}
	return ""
}

// quote shows somebody's text to somebody else: whatever it is, as one line of
// printable characters, and not more of it than a name may have.
func quote(text string) string { return fmt.Sprintf("%.63q", text) }

// differs reports whether h and o clash in more than ports.
func (h *Holder) differs(o *Holder) bool {
	return h.Sharing == nil || o.Sharing == nil || h.Key != o.Key || h.Backend != o.Backend
}

// bars reports whether h may not join o, whatever their ports.
func (h *Holder) bars(o *Holder) bool { return h.differs(o) || h.Stranger(o) }

// meets reports whether h and o, who both share, listen on one port.
func (h *Holder) meets(o *Holder) bool {
	_, both := h.common(o)
	return both
}

// common returns the first port on which h and o, who both share, listen. It
// walks both lists at once: a Service may have thousands.
func (h *Holder) common(o *Holder) (Port, bool) {
	for a, b := h.Ports, o.Ports; len(a) > 0 && len(b) > 0; {
		switch a[0].Compare(b[0]) {
		case -1:
			a = a[1:]
		case 0:
			return a[0], true
		case 1:
			b = b[1:]
		}
	}
	return Port{}, false
}

// Stranger reports whether h and o live in realms that do not both admit each
// other. Strangers that already share an address may go on; they may not start.
func (h *Holder) Stranger(o *Holder) bool {
	return h.Realm != o.Realm && (!h.admits(o.Realm) || !o.admits(h.Realm))
}

func (h *Holder) admits(realm string) bool {
	return h.Sharing != nil && (slices.Contains(h.Admits, "*") || slices.Contains(h.Admits, realm))
}

// Bar says why h may not join o on an address: Clash, or strangeness.
func (h *Holder) Bar(o *Holder) string {
	if why := h.Clash(o); why != "" {
		return why
	}
	if h.Stranger(o) {
		return "which is in another namespace, and not both permit that"
	}
	return ""
}

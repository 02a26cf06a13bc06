package lbpool

import (
	"cmp"
	"fmt"
	"slices"
)

// Holder is an owner of an address, such as a Service.
type Holder struct {
	// Realm is the namespace. Holders of different realms share an address only if each
	// Admits the other's.
	Realm string
	// Name within the realm.
	Name string
	// Sharing is with which other holders it shares an address; nil: none.
	*Sharing
}

// Sharing is what the holders of one address must agree on.
type Sharing struct {
	// Key must be equal.
	Key string
	// Admits are other realms whose holders may share the address; "*" is any.
	Admits []string
	// Ports on which the holder listens, sorted by Port.Compare. No two holders may have
	// the same port.
	Ports []Port
	// Backend must be equal: "" if every node can take the traffic, else what decides
	// which nodes can.
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

// Clash returns why h and o cannot share an address at all, as the end of a sentence about
// o ("…, which does not share it"), or "".
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

// quote quotes text that another user wrote: as one line of printable characters, and no
// longer than a name may be.
func quote(text string) string { return fmt.Sprintf("%.63q", text) }

// differs reports whether h and o clash in more than ports.
func (h *Holder) differs(o *Holder) bool {
	return h.Sharing == nil || o.Sharing == nil || h.Key != o.Key || h.Backend != o.Backend
}

// bars reports whether h may not join o, regardless of their ports.
func (h *Holder) bars(o *Holder) bool { return h.differs(o) || h.Unadmitted(o) }

// meets reports whether h and o, which both share, have a port in common.
func (h *Holder) meets(o *Holder) bool {
	_, both := h.common(o)
	return both
}

// common returns the first port that h and o, which both share, have in common. It walks
// both sorted lists once: a Service may have thousands of ports.
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

// Unadmitted reports whether h and o are of different realms of which one does not admit
// the other. Such holders may not begin to share an address; those that already do may go
// on.
func (h *Holder) Unadmitted(o *Holder) bool {
	return h.Realm != o.Realm && (!h.admits(o.Realm) || !o.admits(h.Realm))
}

func (h *Holder) admits(realm string) bool {
	return h.Sharing != nil && (slices.Contains(h.Admits, "*") || slices.Contains(h.Admits, realm))
}

// Bar returns why h may not join o on an address, by Clash or Unadmitted, or "".
func (h *Holder) Bar(o *Holder) string {
	if why := h.Clash(o); why != "" {
		return why
	}
	if h.Unadmitted(o) {
		return "which is in another namespace, and not both permit that"
	}
	return ""
}

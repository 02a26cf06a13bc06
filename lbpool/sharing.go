package lbpool

import (
	"cmp"
	"fmt"
	"slices"
)

// Tenant is who sits on an address.
type Tenant struct {
	// Realm is the namespace. Sharing beyond it needs both sides' Admits.
	Realm string
	// Name within the realm; both together name it to people.
	Name string
	// Sharing says which others may share its address; nil: none.
	*Sharing
}

// Sharing is what tenants of one address must agree about.
type Sharing struct {
	// Key must be the same.
	Key string
	// Admits are other realms whose tenants may join; "*" is any.
	Admits []string
	// Ports the tenant listens on, in the order of Port.Compare; no two tenants
	// may listen on one.
	Ports []Port
	// Backend must be equal: empty where any node can take the traffic, else
	// what decides which nodes can.
	Backend string
}

// String returns "team-b/web".
func (t *Tenant) String() string {
	if t.Realm == "" {
		return t.Name
	}
	return t.Realm + "/" + t.Name
}

// Port is one port of a tenant.
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

// Clash says why t and o cannot sit on one address at all, seen from t, as the
// end of a sentence about o ("…, which does not share"), or "".
func (t *Tenant) Clash(o *Tenant) string {
	switch {
	case o.Sharing == nil:
		return "which does not share it"
	case t.Sharing == nil:
		return "which shares it only under its sharing key " + quote(o.Key)
	case t.Key != o.Key:
		return "which shares it under another key, " + quote(o.Key)
	case t.Backend != o.Backend:
		return "which does not have the same externalTrafficPolicy and, with Local, the same selector"
	}
	if p, both := t.common(o); both {
		return "which already uses port " + p.String() + " of it"
	}
	return ""
}

// quote shows somebody's text to somebody else: whatever it is, as one line of
// printable characters, and not more of it than a name may have.
func quote(text string) string { return fmt.Sprintf("%.63q", text) }

// differs reports whether t and o clash in more than ports.
func (t *Tenant) differs(o *Tenant) bool {
	return t.Sharing == nil || o.Sharing == nil || t.Key != o.Key || t.Backend != o.Backend
}

// bars reports whether t may not join o, whatever their ports.
func (t *Tenant) bars(o *Tenant) bool { return t.differs(o) || t.Stranger(o) }

// meets reports whether t and o, who both share, listen on one port.
func (t *Tenant) meets(o *Tenant) bool {
	_, both := t.common(o)
	return both
}

// common returns the first port on which t and o, who both share, listen. It
// walks both lists at once: a Service may have thousands.
func (t *Tenant) common(o *Tenant) (Port, bool) {
	for a, b := t.Ports, o.Ports; len(a) > 0 && len(b) > 0; {
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

// Stranger reports whether t and o live in realms that do not both admit each
// other. Strangers that already share an address may go on; they may not start.
func (t *Tenant) Stranger(o *Tenant) bool {
	return t.Realm != o.Realm && (!t.admits(o.Realm) || !o.admits(t.Realm))
}

func (t *Tenant) admits(realm string) bool {
	return t.Sharing != nil && (slices.Contains(t.Admits, "*") || slices.Contains(t.Admits, realm))
}

// Bar says why t may not join o on an address: Clash, or strangeness.
func (t *Tenant) Bar(o *Tenant) string {
	if why := t.Clash(o); why != "" {
		return why
	}
	if t.Stranger(o) {
		return "which is in another namespace, and not both permit that"
	}
	return ""
}

package announce

import (
	"iter"
	"net/netip"
)

// Owners is the node that owns or should own each address of layer 2. It is read from what
// a plan keeps of its compilation anyway: a map would have to be copied whenever one address
// moves. The zero value has no address.
type Owners struct {
	addresses []*address
	nodes     []node
	refusing  map[netip.Addr]string // where the LAN knows better
}

// Of returns the owner of an address; "": no node can own it, or it is none of layer 2.
func (o *Owners) Of(a netip.Addr) string {
	if i, exists := find(o.addresses, a); exists {
		return o.name(o.addresses[i])
	}
	return ""
}

// isUntold reports whether the holder of a keeps it only until it has published under which
// preferences it claimed it, if they are others than those of now.
func (o *Owners) isUntold(a netip.Addr) bool {
	i, exists := find(o.addresses, a)
	return exists && o.addresses[i].untold
}

// Has reports whether an address is one of layer 2.
func (o *Owners) Has(a netip.Addr) bool {
	_, exists := find(o.addresses, a)
	return exists
}

// Len is the number of addresses.
func (o *Owners) Len() int { return len(o.addresses) }

// All are the addresses with their owners, in order of address.
func (o *Owners) All() iter.Seq2[netip.Addr, string] {
	return func(yield func(netip.Addr, string) bool) {
		for _, e := range o.addresses {
			if !yield(e.addr, o.name(e)) {
				return
			}
		}
	}
}

func (o *Owners) name(e *address) string {
	if name, refuses := o.refusing[e.addr]; refuses {
		return name
	}
	if e.owner < 0 {
		return ""
	}
	return o.nodes[e.owner].name
}

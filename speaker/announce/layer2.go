package announce

import (
	"net/netip"
	"slices"
)

// address is an address that an L2Advertisement selects, with the Services of it
// that one does.
type address struct {
	addr  netip.Addr
	pool  int // into compiler.pools
	users []user
	owner int // node index, -1 nobody
	// outpreferred says that its holder keeps it only until owner, which changed
	// preferences name, has taken it.
	outpreferred bool
}

// readLayer2 picks the addresses that have an owner.
func (k *compiler) readLayer2() {
	onlyBGP := func(u user) bool { return len(u.adverts) == 0 }
	for _, h := range k.holdings {
		e := &address{addr: h.addr, pool: h.pool, users: h.users, owner: -1}
		if slices.ContainsFunc(h.users, onlyBGP) { // the common case copies nothing
			e.users = slices.DeleteFunc(slices.Clone(h.users), onlyBGP)
		}
		if len(e.users) > 0 {
			k.addresses = append(k.addresses, e)
		}
	}
}

package announce

import (
	"net/netip"
	"slices"

	"quayside.io/cluster/snapshot"
)

// address is an address that an L2Advertisement selects, with the Services of it
// that one does.
type address struct {
	addr  netip.Addr
	pool  int // into compiler.pools
	users []user

	// What is found out once of these users.
	judged bool
	claim  Claim              // the best; zero: there is none
	keeper int                // the node whose claim stands, -1 nobody's
	nobody []snapshot.Problem // why no node can own it; nil: one can, or nobody has asked
	// outpreferred says that its holder keeps it only until owner, which changed
	// preferences name, has taken it.
	outpreferred bool
	heir         bool // this node is among the next for it; see inherit

	owner int // node index, -1 nobody
}

// isDecided reports whether e has the owner that it has without regard to the others.
// Such a one is never changed again, and plans share it.
func (e *address) isDecided() bool { return e.keeper >= 0 || e.nobody != nil }

// readLayer2 picks the addresses that have an owner.
func (k *compiler) readLayer2() {
	for _, h := range k.holdings {
		if e := addressOf(h); len(e.users) > 0 {
			k.addresses = append(k.addresses, e)
		}
	}
}

// addressOf is h with the users that layer 2 announces.
func addressOf(h *holding) *address {
	onlyBGP := func(u user) bool { return len(u.adverts) == 0 }
	e := &address{addr: h.addr, pool: h.pool, users: h.users, owner: -1}
	if slices.ContainsFunc(h.users, onlyBGP) { // the common case copies nothing
		e.users = slices.DeleteFunc(slices.Clone(h.users), onlyBGP)
	}
	return e
}

package announce

import (
	"net/netip"
	"slices"

	"quayside.io/cluster/snapshot"
)

// address is an address that an L2Advertisement selects, with those of its Services that
// one selects.
type address struct {
	addr  netip.Addr
	pool  int // into compiler.pools
	users []user

	// Results that depend on the users and the claim only, set by judge.
	judged  bool
	claim   Claim              // the best; zero: there is none
	keeper  int                // the node that keeps it, by index; -1: none
	noOwner []snapshot.Problem // why no node can own it; nil: one can, or not computed yet
	// outpreferred says that preferences have changed, and its holder keeps it only until
	// the owner that they name now has taken it.
	outpreferred bool
	// untold says that its holder has not published yet under which preferences it claimed,
	// and that others are preferred to it.
	untold    bool
	successor bool // this node is among its next owners; see markSuccessions

	owner int // by node index; -1: none
}

// isDecided reports whether the owner of e does not depend on other addresses. Such an
// address is never changed again, and plans share it.
func (e *address) isDecided() bool { return e.keeper >= 0 || e.noOwner != nil }

// readLayer2 picks the addresses that have an owner.
func (k *compiler) readLayer2() {
	for _, h := range k.holdings {
		if e := k.addressOf(h); len(e.users) > 0 {
			k.addresses = append(k.addresses, e)
		}
	}
	k.fit = len(k.fittest(slices.Clone(k.usable)))
	k.changed, k.moved = indices(len(k.addresses)), indices(len(k.holdings))
}

// addressOf returns h with only the users that layer 2 announces, and with the nodes that
// serve them there.
func (k *compiler) addressOf(h *holding) *address {
	onlyBGP := func(u user) bool { return len(u.adverts) == 0 }
	e := &address{addr: h.addr, pool: h.pool, users: h.users, owner: -1}
	if slices.ContainsFunc(h.users, onlyBGP) { // the common case copies nothing
		e.users = slices.DeleteFunc(slices.Clone(h.users), onlyBGP)
	}
	k.countEnding(e)
	return e
}

package ownership

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"quayside.io/speaker/announce"
)

// holdings are the addresses of this node.
type holdings struct {
	// claims are its claims with their epochs, which members may not have taken in
	// yet.
	claims map[netip.Addr]int64
	// remembered are claims of this node on addresses that had no Service.
	remembered map[netip.Addr]struct{}
	// losses are the addresses that better claims took from it, against what it sees.
	losses map[netip.Addr]announce.Loss
	// handing says since when an address is answered only for a successor.
	handing map[netip.Addr]time.Time
	// answered are the addresses that were answered for at the last step, with
	// their interfaces; cut are those of this node that lost all of them, or that
	// nobody on the LAN can have heard of for a while.
	answered map[netip.Addr][]string
	cut      map[netip.Addr]struct{}
}

func newHoldings() holdings {
	return holdings{
		claims: map[netip.Addr]int64{}, remembered: map[netip.Addr]struct{}{}, losses: map[netip.Addr]announce.Loss{},
		handing: map[netip.Addr]time.Time{}, cut: map[netip.Addr]struct{}{},
	}
}

// has reports whether this node's claim on a is the best known.
func (h *holdings) has(a netip.Addr) bool {
	_, ok := h.claims[a]
	return ok
}

// take notes that an address is claimed.
func (h *holdings) take(a netip.Addr, epoch int64) {
	delete(h.remembered, a)
	delete(h.cut, a)
	h.claims[a] = epoch
}

// lose notes that a better claim silences this node's.
func (h *holdings) lose(a netip.Addr, now time.Time) {
	delete(h.claims, a)
	h.losses[a] = h.losses[a].Again(now)
}

// concede forgets the losses of what the plan leaves to others.
func (h *holdings) concede(node string, plan *announce.L2) {
	maps.DeleteFunc(h.losses, func(a netip.Addr, _ announce.Loss) bool { return plan.Concedes(a, node) })
}

// remember notes claims of this node that it does not carry out: gossip keeps
// them for a while after the last Service of an address has gone.
func (h *holdings) remember(node string, heard map[netip.Addr]announce.Claim) {
	for a, c := range heard {
		if c.Node == node && !h.has(a) {
			h.remembered[a] = struct{}{}
		}
	}
	maps.DeleteFunc(h.remembered, func(a netip.Addr, _ struct{}) bool { return heard[a].Node != node })
}

// noteHandOver notes what is answered only for a successor.
func (h *holdings) noteHandOver(answers map[netip.Addr]announce.Answer, now time.Time) {
	for a, answer := range answers {
		if _, known := h.handing[a]; answer.HandOver != "" && !known {
			h.handing[a] = now
		} else if answer.HandOver == "" {
			delete(h.handing, a)
		}
	}
	maps.DeleteFunc(h.handing, func(a netip.Addr, _ time.Time) bool { return !h.has(a) })
}

// forget drops what is not known any more. The members remember the claim on an
// address that is gone for a while, should it come back.
func (h *holdings) forget(known map[netip.Addr]struct{}) {
	maps.DeleteFunc(h.claims, func(a netip.Addr, _ int64) bool { _, exists := known[a]; return !exists })
	maps.DeleteFunc(h.losses, func(a netip.Addr, _ announce.Loss) bool { _, exists := known[a]; return !exists })
}

// cutAll cuts whatever this node answers for, and returns it.
func (h *holdings) cutAll() (cut []netip.Addr) {
	for a := range h.answered {
		if h.has(a) {
			h.cut[a] = struct{}{}
			cut = append(cut, a)
		}
	}
	return cut
}

// answer notes what is answered for from now on, and reports whether something is
// new. Addresses that are not answered for any more since every link that carried
// them is down are cut, and returned: when a link comes up again, others may have
// taken them, and to announce them at once would cut the connections that they
// have.
func (h *holdings) answer(now map[netip.Addr]Announcement, known map[netip.Addr]struct{}, up map[string]bool) (added bool, cut []netip.Addr) {
	for a := range now {
		_, answered := h.answered[a]
		added = added || !answered
	}
	for a, interfaces := range h.answered {
		if _, still := now[a]; !still && len(interfaces) > 0 && !slices.ContainsFunc(interfaces, func(name string) bool { return up[name] }) {
			h.cut[a] = struct{}{}
			cut = append(cut, a)
		}
	}
	maps.DeleteFunc(h.cut, func(a netip.Addr, _ struct{}) bool { _, exists := known[a]; return !exists || !h.has(a) })
	h.answered = make(map[netip.Addr][]string, len(now))
	for a, announcement := range now {
		h.answered[a] = announcement.Interfaces
	}
	return added, cut
}

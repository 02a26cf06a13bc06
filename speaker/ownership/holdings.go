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
	// claims are its claims with their epochs. Gossip may not have all of them yet.
	claims map[netip.Addr]int64
	// remembered are claims of this node on addresses that had no Service.
	remembered map[netip.Addr]struct{}
	// resumed is since when this node has had addresses that it has not taken: it had claims
	// on them in an earlier life, or before they were away. Others may know better claims.
	resumed map[netip.Addr]time.Time
	// placed are the preferences under which it has its addresses, see announce.View.
	placed map[netip.Addr]string
	// losses are the addresses that better claims took from it, see announce.Loss.
	losses map[netip.Addr]announce.Loss
	// handing is since when an address is answered for only until its successor does.
	handing map[netip.Addr]time.Time
	// answered are the addresses that were answered for after the last step, with their
	// interfaces; cut are those of this node whose interfaces all went down, or that were
	// announced on a LAN from which this node was cut off.
	answered map[netip.Addr][]string
	cut      map[netip.Addr]struct{}
}

func newHoldings() holdings {
	return holdings{
		claims: map[netip.Addr]int64{}, remembered: map[netip.Addr]struct{}{}, resumed: map[netip.Addr]time.Time{}, placed: map[netip.Addr]string{}, losses: map[netip.Addr]announce.Loss{},
		handing: map[netip.Addr]time.Time{}, cut: map[netip.Addr]struct{}{},
	}
}

// has reports whether this node's claim on a is the best known.
func (h *holdings) has(a netip.Addr) bool {
	_, ok := h.claims[a]
	return ok
}

// take records a claim of this node.
func (h *holdings) take(t announce.Take) {
	delete(h.remembered, t.Address)
	delete(h.resumed, t.Address)
	delete(h.cut, t.Address)
	h.claims[t.Address], h.placed[t.Address] = t.Epoch, t.Preference
}

// resume records that this node has an address by a claim that it finds.
func (h *holdings) resume(a netip.Addr, epoch int64, now time.Time) {
	if !h.has(a) {
		h.resumed[a] = now
	}
	h.claims[a] = epoch
}

// contestable is how long it takes at most until a better claim than a resumed one is heard
// of: longer than members take to exchange all that they know.
const contestable = 90 * time.Second

// outlives reports whether this node keeps an address although a member that is gone has a
// better claim: it answers for it by a claim of before, and nobody else does.
func (h *holdings) outlives(a netip.Addr, now time.Time) bool {
	since, resumed := h.resumed[a]
	_, answered := h.answered[a]
	_, cut := h.cut[a]
	_, handing := h.handing[a]
	return resumed && answered && !cut && !handing && now.Sub(since) < contestable
}

// lose records that a better claim beats this node's.
func (h *holdings) lose(a netip.Addr, now time.Time) {
	delete(h.claims, a)
	delete(h.resumed, a)
	delete(h.placed, a)
	h.losses[a] = h.losses[a].Again(now)
}

// concede drops the losses of addresses that the plan leaves to other nodes.
func (h *holdings) concede(node string, plan *announce.L2) {
	maps.DeleteFunc(h.losses, func(a netip.Addr, _ announce.Loss) bool { return plan.Concedes(a, node) })
}

// remember records claims of this node in gossip that it does not have: gossip keeps them
// for a while after the last Service of an address has gone.
func (h *holdings) remember(node string, heard map[netip.Addr]announce.Claim) {
	for a, c := range heard {
		if c.Node == node && !h.has(a) {
			h.remembered[a] = struct{}{}
		}
	}
	maps.DeleteFunc(h.remembered, func(a netip.Addr, _ struct{}) bool { return heard[a].Node != node })
}

// noteAnswers records which addresses are answered for only until a successor does, and
// the preferences of all.
func (h *holdings) noteAnswers(answers map[netip.Addr]announce.Answer, now time.Time) {
	for a, answer := range answers {
		h.placed[a] = answer.Preference
		if _, known := h.handing[a]; answer.HandOver != "" && !known {
			h.handing[a] = now
		} else if answer.HandOver == "" {
			delete(h.handing, a)
		}
	}
	maps.DeleteFunc(h.handing, func(a netip.Addr, _ time.Time) bool { return !h.has(a) })
}

// forget drops addresses that do not exist any more. Gossip remembers the claims on them
// for a while, in case they come back.
func (h *holdings) forget(known map[netip.Addr]struct{}) {
	maps.DeleteFunc(h.claims, func(a netip.Addr, _ int64) bool { _, exists := known[a]; return !exists })
	maps.DeleteFunc(h.resumed, func(a netip.Addr, _ time.Time) bool { return !h.has(a) })
	maps.DeleteFunc(h.placed, func(a netip.Addr, _ string) bool { _, exists := known[a]; return !exists })
	maps.DeleteFunc(h.losses, func(a netip.Addr, _ announce.Loss) bool { _, exists := known[a]; return !exists })
}

// cutAll marks all addresses that this node answers for as cut, and returns them.
func (h *holdings) cutAll() (cut []netip.Addr) {
	for a := range h.answered {
		if h.has(a) {
			h.cut[a] = struct{}{}
			cut = append(cut, a)
		}
	}
	return cut
}

// answer records what is answered for from now on, and reports whether an address is new.
// Addresses that are not answered for any more because all their links are down are marked
// as cut, and returned: when a link comes up again, another node may have taken them, and
// announcing them at once would cut the connections of that node.
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

package speaker

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
	"quayside.io/speaker/l2"
	"quayside.io/speaker/ownership"
)

const (
	// hearEvery is how often this node listens at rest, and hearAgain while it has not
	// heard something: a question takes some milliseconds, mostly to open and close sockets.
	hearEvery, hearAgain = 20 * time.Second, 5 * time.Second
	// hearAtOnce is how many addresses of one node are asked for together.
	hearAtOnce = 8
	// unheardAfter is how often in a row an address is asked for without an answer.
	unheardAfter = 3
	// maxUnheard is how many addresses a SpeakerStatus lists.
	maxUnheard = 100
)

// hearTiming is for a LAN that answers: it ends with the last answer.
func hearTiming() l2.Timing { return l2.Timing{Times: 3, Every: 100 * time.Millisecond} }

// hearing asks the LAN for the addresses that other nodes announce and this one would take
// over. Where one is not answered, and its node's own address on the same LAN is, something in
// between drops what that node says for it, as networks of virtual machines do with addresses
// that they have not assigned. It decides nothing; people are told.
type hearing struct {
	lan     LAN
	cluster func() *snapshot.Cluster
	known   atomic.Pointer[audible]
	unheard atomic.Pointer[[]v1alpha1.UnheardAddress]
	changed chan struct{}

	asked map[netip.Addr]heard // belongs to run
}

// audible is from what is worked out what could be heard.
type audible struct {
	watch []string // the nodes whose addresses this one would take over
	facts map[string]announce.Facts
	own   []announce.Interface
	owner func(netip.Addr) string
}

// heard is what came of asking for an address.
type heard struct {
	node   string // that announced it
	misses int    // in a row
	at     time.Time
}

// doubt is how often an address was not answered, if it must be asked for again soon.
func (h heard) doubt() int {
	if h.misses == unheardAfter {
		return 0
	}
	return h.misses
}

// spoken is an address that a node announces on a LAN of this one.
type spoken struct {
	address netip.Addr
	node    string
	on      string         // interface of this node
	host    ownership.Host // the node itself there
	heard                  // the zero value: it was never asked for
}

func newHearing(lan LAN, cluster func() *snapshot.Cluster) *hearing {
	h := &hearing{lan: lan, cluster: cluster, changed: make(chan struct{}, 1), asked: map[netip.Addr]heard{}}
	h.unheard.Store(&[]v1alpha1.UnheardAddress{})
	return h
}

// know takes in the outcome of a step.
func (h *hearing) know(w *ownership.World, plan *announce.L2) {
	h.known.Store(&audible{watch: plan.Watch, facts: w.Members.Facts, own: w.Link.Interfaces, owner: plan.Owners.Of})
}

// Unheard are the addresses that cannot be heard, in order. Changed signals others.
func (h *hearing) Unheard() []v1alpha1.UnheardAddress { return *h.unheard.Load() }

// Changed signals that Unheard returns others.
func (h *hearing) Changed() <-chan struct{} { return h.changed }

// run listens until ctx ends.
func (h *hearing) run(ctx context.Context) error {
	for pause := hearEvery; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		pause = h.round(ctx, time.Now())
	}
}

// round asks for some addresses of one node, and returns when to ask again.
func (h *hearing) round(ctx context.Context, now time.Time) time.Duration {
	k := h.known.Load()
	if k == nil {
		return hearEvery
	}
	all := h.spoken(k)
	if some := together(all); len(some) > 0 {
		h.ask(ctx, some, now)
	}
	h.forget(all)
	return h.conclude(all)
}

// spoken is all that could be heard: what is in doubt first, then what was not asked for the
// longest.
func (h *hearing) spoken(k *audible) (all []spoken) {
	seen := map[netip.Addr]bool{} // Services may share an address
	c := h.cluster()
	for _, name := range k.watch {
		status, ok := c.SpeakerStatuses.Get(snapshot.Key{Name: name})
		if !ok || k.facts[name].Leaving {
			continue
		}
		for _, a := range status.Status.Announcing {
			address, err := netip.ParseAddr(a.Address)
			if err != nil || a.Protocol != announce.ProtocolL2 || k.owner(address) != name || seen[address] {
				continue
			}
			seen[address] = true
			s := spoken{address: address, node: name}
			if s.on, s.host, ok = meet(address, k.own, k.facts[name].Interfaces, a.Interfaces); !ok {
				continue
			}
			if last := h.asked[address]; last.node == name {
				s.heard = last
			}
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b spoken) int {
		return cmp.Or(cmp.Compare(b.doubt(), a.doubt()), a.at.Compare(b.at))
	})
	return all
}

// meet finds an interface of this node that is on a LAN with one of theirs that is up and, if
// only names any, one of those: by a subnet that has the address, or else by any.
func meet(address netip.Addr, own, theirs []announce.Interface, only []string) (on string, host ownership.Host, ok bool) {
	for i := range theirs {
		their := &theirs[i]
		if !their.Up || their.Deaf || their.MAC == "" || len(only) > 0 && !slices.Contains(only, their.Name) {
			continue
		}
		for _, p := range their.Prefixes {
			j := slices.IndexFunc(own, func(i announce.Interface) bool { return i.Up && !i.Deaf && borders(&i, p) })
			if j < 0 || ok && !p.Contains(address) {
				continue
			}
			on, host, ok = own[j].Name, ownership.Host{Address: p.Addr(), MAC: their.MAC}, true
			if p.Contains(address) {
				return on, host, ok
			}
		}
	}
	return on, host, ok
}

// borders reports whether an interface is in the subnet of another host's address.
func borders(i *announce.Interface, other netip.Prefix) bool {
	return slices.ContainsFunc(i.Prefixes, func(own netip.Prefix) bool { return own.Masked() == other.Masked() && own.Addr() != other.Addr() })
}

// together are the first of all, and others of the same node that can be asked for with it.
func together(all []spoken) (some []spoken) {
	for _, s := range all {
		if first := all[0]; len(some) < hearAtOnce && s.node == first.node && s.on == first.on && s.host == first.host {
			some = append(some, s)
		}
	}
	return some
}

// ask asks for addresses of a node, and for that itself.
func (h *hearing) ask(ctx context.Context, some []spoken, now time.Time) {
	on, host := []string{some[0].on}, some[0].host
	questions := []l2.Question{{Address: host.Address, Interfaces: on, Host: true}}
	for _, s := range some {
		questions = append(questions, l2.Question{Address: s.address, Interfaces: on, Held: true})
	}
	found, _, err := h.lan.Listen(ctx, questions, hearTiming())
	if err != nil {
		return
	}
	node, lives := found[host.Address]
	lives = lives && node.Answered && strings.EqualFold(node.MAC, host.MAC)
	for _, s := range some {
		last := heard{node: s.node, misses: s.misses, at: now}
		if _, answered := found[s.address]; answered {
			last.misses = 0
		} else if lives { // otherwise this LAN proves nothing
			last.misses = min(last.misses+1, unheardAfter)
		}
		h.asked[s.address] = last
	}
}

// forget leaves out what is not announced any more, or by another node.
func (h *hearing) forget(all []spoken) {
	kept := make(map[netip.Addr]heard, len(h.asked))
	for _, s := range all {
		if last := h.asked[s.address]; last.node == s.node {
			kept[s.address] = last
		}
	}
	h.asked = kept
}

// conclude publishes what is not heard, and returns when to ask again.
func (h *hearing) conclude(all []spoken) (pause time.Duration) {
	unheard := []v1alpha1.UnheardAddress{}
	pause = hearEvery
	for _, s := range all {
		switch last, asked := h.asked[s.address]; {
		case last.misses == unheardAfter:
			unheard = append(unheard, v1alpha1.UnheardAddress{Address: s.address.String(), Node: s.node, Interface: s.on})
		case last.misses > 0, !asked:
			pause = hearAgain
		}
	}
	slices.SortFunc(unheard, func(a, b v1alpha1.UnheardAddress) int { return strings.Compare(a.Address, b.Address) })
	unheard = unheard[:min(len(unheard), maxUnheard)]
	if before := h.unheard.Swap(&unheard); !slices.Equal(*before, unheard) {
		poke(h.changed)
	}
	return pause
}

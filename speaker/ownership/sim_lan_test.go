package ownership

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// The LAN of a simulated fleet: who hears whom, who answers, and how it is asked.

// onNet reports whether the kernel of a node hears and is heard anywhere, onLAN whether
// it does where addresses are answered for.
func (n *simNode) onNet() bool { return n.carrier && !n.silenced }
func (n *simNode) onLAN() bool { return n.onNet() && !n.lanCut }

// lanCable cuts a node off from the LAN, or ends that, while gossip and the API server
// are on another network. Its layer 2 finds out.
func (n *simNode) lanCable(cut bool) {
	delay := n.about(hearDelay)
	if cut {
		delay = n.about(deafDelay)
	}
	n.cable(fmt.Sprintf("cut off from the LAN: %v", cut), func() { n.lanCut = cut })
	n.in(delay, func() {
		if n.lanCut == cut && n.deaf != cut {
			n.note("%s knows that it is deaf: %v", n.name, cut)
			n.deaf = cut
			n.happen()
		}
	})
}

// works reports whether its speaker gets to answer what the LAN asks.
func (n *simNode) works() bool { return n.speaker != nil && !n.paused }

// hears reports whether n hears what other says.
func (n *simNode) hears(other *simNode) bool {
	return n == other || n.onNet() && other.onNet() && n.segment == other.segment
}

// answering are those on a segment that answer for an address.
func (s *sim) answering(a netip.Addr, segment int) (macs []string) {
	for _, n := range s.nodes {
		if n.works() && n.onLAN() && n.segment == segment {
			if _, answers := n.speaker.answers[a]; answers {
				macs = append(macs, n.mac)
			}
		}
	}
	if x := s.strangers[a]; x != nil && x.segment == segment {
		macs = append(macs, x.mac)
	}
	return macs
}

// who is the node that a client near the LAN reaches at an address, "" nobody, or
// the MAC of a stranger.
func (s *sim) who(a string) string { return s.whoOn(a, 0) }

func (s *sim) whoOn(a string, segment int) string {
	macs := s.answering(netip.MustParseAddr(a), segment)
	if len(macs) == 0 {
		return ""
	}
	for _, n := range s.nodes {
		if n.mac == macs[0] {
			return n.name
		}
	}
	return macs[0]
}

func (s *sim) node(name string) *simNode {
	i := slices.IndexFunc(s.nodes, func(n *simNode) bool { return n.name == name })
	if i < 0 {
		s.fatalf("no node is called %q", name)
	}
	return s.nodes[i]
}

func (s *sim) at(a netip.Addr) *simNode {
	for _, n := range s.nodes {
		if netip.MustParseAddr(fmt.Sprintf("10.0.0.%d", n.index+1)) == a {
			return n
		}
	}
	return nil
}

// asking is an Inquiry under way.
type asking struct {
	*simNode
	*Inquiry
	by            *simSpeaker
	found         map[netip.Addr]Found
	before, after bool // signs of life before the last question, and since
}

// ask puts an Inquiry to the LAN.
func (n *simNode) ask(q *Inquiry) {
	a := &asking{simNode: n, Inquiry: q, by: n.speaker, found: map[netip.Addr]Found{}}
	for i := range q.Timing.Times {
		n.in(time.Duration(i)*q.Timing.Every, func() { a.put(i == q.Timing.Times-1) })
	}
	n.in(q.Timing.Window(), a.end)
}

// put asks once.
func (a *asking) put(last bool) {
	if !a.onNet() {
		return
	}
	answered, questions := false, a.Questions
	if a.onLAN() {
		answered = a.segment == 0 || a.farHost
	} else {
		questions = nil
	}
	for _, q := range questions {
		for _, mac := range a.answering(q.Address, a.segment) {
			if _, known := a.found[q.Address]; !known && mac != a.mac {
				a.found[q.Address] = Found{"eth0", mac, true}
			}
			answered = answered || mac != a.mac
		}
	}
	for _, at := range a.Nodes {
		if host := a.at(at); host != nil && host != a.simNode && a.hears(host) {
			a.found[at] = Found{"eth0", host.mac, true}
			answered = true
		}
	}
	if last {
		a.after = answered
	} else {
		a.before = a.before || answered
	}
}

// liveness is what the kernel of another node says of its speaker.
func (n *simNode) liveness(other *simNode) Liveness {
	switch {
	case other == nil || !n.hears(other) || n.gossipCut || other.gossipCut:
		return Silent
	case other.speaker != nil || n.now.Before(other.closing):
		return Listening
	}
	return Closed
}

func (a *asking) end() {
	f := &Finding{Inquiry: a.Inquiry, Found: a.found, Liveness: map[string]Liveness{}, Deaf: (len(a.Nodes) > 0 || a.Nearby != nil) && !(a.before && a.after)}
	for name := range a.Losers {
		f.Liveness[name] = a.liveness(a.node(name))
	}
	a.tell(f)
	a.watchTheDying(f, 10)
}

func (a *asking) tell(f *Finding) {
	if a.speaker == a.by {
		a.happen(f)
	}
}

func (a *asking) watchTheDying(f *Finding, looks int) {
	if looks == 0 || !f.Slow() {
		return
	}
	a.in(25*time.Millisecond, func() {
		later, died := *f, false
		later.Liveness = map[string]Liveness{}
		for name, l := range f.Liveness {
			if l == Listening {
				l = a.liveness(a.node(name))
				died = died || l == Closed
			}
			later.Liveness[name] = l
		}
		if died {
			a.tell(&later)
		} else {
			a.watchTheDying(&later, looks-1)
		}
	})
}

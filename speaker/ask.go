package speaker

import (
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"sync"
	"time"

	"quayside.io/speaker/l2"
	"quayside.io/speaker/members"
	"quayside.io/speaker/ownership"
)

// asker carries out Inquiries: it asks the LAN and other nodes.
type asker struct {
	l2       LAN
	members  Gossip
	log      *slog.Logger
	findings chan *ownership.Finding
	asking   sync.WaitGroup
}

func newAsker(s *Speaker) *asker {
	return &asker{l2: s.l2, members: s.members, log: s.opts.Log, findings: make(chan *ownership.Finding, 16)}
}

// ask starts an Inquiry. Its Finding is sent to findings, unless ctx ends before.
func (a *asker) ask(ctx context.Context, q *ownership.Inquiry) {
	a.asking.Go(func() {
		f := a.find(ctx, q)
		a.tell(ctx, f)
		a.watchTheDying(ctx, f)
	})
}

func (a *asker) tell(ctx context.Context, f *ownership.Finding) {
	select {
	case a.findings <- f:
	case <-ctx.Done():
	}
}

// find asks the LAN, and at the same time the nodes that are to lose an address.
func (a *asker) find(ctx context.Context, q *ownership.Inquiry) *ownership.Finding {
	alive := make(chan map[string]ownership.Liveness, 1)
	go func() { alive <- a.probe(ctx, q.Losers, q.Timing.Window()) }()
	questions := make([]l2.Question, 0, len(q.Questions)+len(q.Nodes))
	for _, one := range q.Questions {
		questions = append(questions, l2.Question{Address: one.Address, Interfaces: one.Interfaces, Held: one.Held})
	}
	if len(q.Nodes) > 0 {
		questions = append(questions, a.witnesses(q.Nodes)...)
	}
	if q.Nearby != nil {
		questions = append(questions, a.nearby(q.Nearby)...)
	}
	found, heard, err := a.l2.Listen(ctx, questions, l2.Timing(q.Timing))
	f := &ownership.Finding{Inquiry: q, Found: make(map[netip.Addr]ownership.Found, len(found)), Deaf: (len(q.Nodes) > 0 || q.Nearby != nil) && !heard, Liveness: <-alive, Err: err}
	for address, who := range found {
		f.Found[address] = ownership.Found(who)
	}
	f, _ = a.lookAgain(ctx, f)
	return f
}

// witnesses are questions for nodes and for the hosts in the kernel's neighbour table.
func (a *asker) witnesses(nodes map[string]netip.Addr) []l2.Question {
	out, err := a.l2.Neighbours()
	if err != nil {
		a.log.Warn("neighbours are not known", "error", err)
	}
	for _, at := range nodes {
		out = append(out, l2.Question{Address: at, Host: true})
	}
	return out
}

// nearby are questions for speakers on some LANs, and for the hosts in the kernel's
// neighbour table on these.
func (a *asker) nearby(hosts map[string][]ownership.Host) (out []l2.Question) {
	all, err := a.l2.Neighbours()
	if err != nil {
		a.log.Warn("neighbours are not known", "error", err)
	}
	for _, q := range all {
		if _, asked := hosts[q.Interfaces[0]]; asked {
			out = append(out, q)
		}
	}
	for name, some := range hosts {
		for _, h := range some {
			out = append(out, l2.Question{Address: h.Address, Interfaces: []string{name}, Host: true})
		}
	}
	return out
}

// probe asks nodes whether their speakers run.
func (a *asker) probe(ctx context.Context, nodes map[string]netip.Addr, timeout time.Duration) map[string]ownership.Liveness {
	out := map[string]ownership.Liveness{}
	var mu sync.Mutex
	var asking sync.WaitGroup
	for name, at := range nodes {
		asking.Go(func() {
			l := liveness(a.members.Probe(ctx, at, timeout))
			mu.Lock()
			defer mu.Unlock()
			out[name] = l
		})
	}
	asking.Wait()
	return out
}

func liveness(l members.Liveness) ownership.Liveness {
	switch l {
	case members.Listening:
		return ownership.Listening
	case members.Closed:
		return ownership.Closed
	}
	return ownership.Silent
}

// lookAgain probes the speakers that listened again, and reports whether one has stopped.
// The port of a killed speaker stays open until the kernel has closed its sockets, which
// takes some 13 ms for each packet socket, of which there are several per interface.
func (a *asker) lookAgain(ctx context.Context, f *ownership.Finding) (later *ownership.Finding, died bool) {
	listened := map[string]netip.Addr{}
	for name, l := range f.Liveness {
		if l == ownership.Listening {
			listened[name] = f.Losers[name]
		}
	}
	now := *f
	now.Liveness = maps.Clone(f.Liveness) // the machine may be reading the earlier one
	for name, l := range a.probe(ctx, listened, f.Timing.Window()) {
		now.Liveness[name] = l
		died = died || l == ownership.Closed
	}
	return &now, died
}

// Speakers that may be dying are probed until about the time of the next Inquiry.
const (
	looks     = 10
	lookPause = 25 * time.Millisecond
)

// watchTheDying sends another Finding when a speaker stops listening before the next
// Inquiry, so that the address need not wait for that.
func (a *asker) watchTheDying(ctx context.Context, f *ownership.Finding) {
	for range looks {
		if !f.Slow() {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookPause):
		}
		later, died := a.lookAgain(ctx, f)
		if f = later; died {
			a.tell(ctx, f)
			return
		}
	}
}

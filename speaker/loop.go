package speaker

import (
	"context"
	"net/netip"
	"time"

	"quayside.io/speaker/announce"
	"quayside.io/speaker/l2"
	"quayside.io/speaker/members"
	"quayside.io/speaker/ownership"
)

// answersWithin is how long a claim waits at most until this node answers.
const answersWithin = 250 * time.Millisecond

// loop passes events to the machine and carries out what it returns. It returns when the
// addresses are handed over, or when a driver has failed.
func (s *Speaker) loop(ctx, drivers context.Context, p *publisher) {
	machine, ask := ownership.New(s.machineOptions()), newAsker(s)
	asking, stop := context.WithCancel(drivers)
	defer ask.asking.Wait()
	defer stop()
	sub := s.opts.Source.Watch(Kinds()...)
	defer sub.Stop()
	leave, synced := ctx.Done(), s.opts.Source.Synced()
	wake, held := time.NewTimer(time.Hour), true
	calm := time.NewTimer(0) // until then, changes of the cluster alone cause no step
	for {
		var happened []ownership.Event
		// One of these happened: the cluster has changed, is complete, or has more endpoints;
		// members, interfaces, what is heard or what kube-proxy says has changed; a router was
		// found; the LAN was asked; a stranger answers; an Event is due; a timer; the end; a fault.
		select {
		case <-sub.C():
			// Compiling a large cluster takes a while, and changes of it may take at most
			// half of this goroutine's time. Other events do not wait.
			if !machine.StillValid(s.view.look()) && !held {
				held = true
				calm.Reset(s.metrics.last)
			}
			continue
		case <-calm.C:
			held = false
		case <-synced:
			synced = nil
		case <-s.view.next():
		case <-s.members.Watch():
		case <-s.l2.Watch():
		case <-s.hearing.Changed():
		case <-s.rules.Watch():
		case <-s.links.Watch():
		case <-s.health.Watch():
		case <-s.bfd.Watch():
			s.bgp.Set(guarded(s.routers, s.bfd.State()))
			s.tellSessions(p)
			continue
		case <-s.bgp.Watch():
			// This changes no plan: a peer that flaps must not cause compilations.
			s.tellSessions(p)
			continue
		case <-s.again.C:
			s.report()
			continue
		case c := <-s.l2.Conflicts():
			happened = append(happened, ownership.Conflict(c))
		case f := <-ask.findings:
			happened = append(happened, f)
		case <-wake.C:
		case <-leave:
			leave = nil
			happened = append(happened, ownership.Leave{})
		case <-drivers.Done():
			return
		}
		s.cores.work()
		world, began := s.world(), time.Now()
		s.learnKeys(world.Cluster)
		out := machine.Step(began, world, happened...)
		s.metrics.stepped(time.Since(began), out.Plans)
		if out.End == ownership.Overdue {
			s.opts.Log.Warn("addresses were not taken over in time", "addresses", len(out.Plan.L2.Answers))
			return
		}
		for _, q := range out.Ask {
			ask.ask(asking, q)
		}
		s.setSessions(world, &out.Plan.BGP)
		s.setChecks(out.Plan.Checks)
		s.carryOut(out)
		s.tell(world, out, p)
		wake.Reset(time.Until(out.Wake))
		if out.End == ownership.Done {
			linger(drivers, p)
			return
		}
	}
}

func (s *Speaker) machineOptions() ownership.Options {
	return ownership.Options{
		Node: s.opts.NodeName, HandOver: s.opts.HandOver, HandOverOnCordon: s.opts.HandOverOnCordon,
		Announce: announce.Options{IgnoreExcludeLabel: s.opts.IgnoreExcludeLB, ExternalIPs: s.opts.ExternalIPs, Namespace: s.opts.Namespace},
	}
}

// world returns the current state of the drivers and the cluster.
func (s *Speaker) world() ownership.World {
	c := s.view.look()
	return ownership.World{
		Cluster: c, Synced: s.view.complete,
		Members: (*ownership.Members)(s.members.View()),
		Link:    ownership.Link{Interfaces: s.l2.Interfaces(), Mute: s.mute, Hazards: s.l2.Hazards(), Failures: s.l2.Failures(), Unheard: s.hearing.Unheard()},
		Proxy:   ownership.KubeProxy{Behind: s.rules.Behind() != "", Late: s.rules.Late(), Unserved: s.health.None()},
	}
}

// carryOut passes the output of a step to the drivers.
func (s *Speaker) carryOut(out *ownership.Output) {
	want := &l2.Want{Addresses: make(map[netip.Addr]l2.Announcement, len(out.LAN.Addresses)), Members: out.LAN.Speakers, Nearby: map[string][]l2.Host{}}
	for name, hosts := range out.LAN.Nearby {
		for _, h := range hosts {
			want.Nearby[name] = append(want.Nearby[name], l2.Host(h))
		}
	}
	for a, announcement := range out.LAN.Addresses {
		want.Addresses[a] = l2.Announcement(announcement)
	}
	s.l2.Set(want)
	if out.LAN.Added {
		// The node that hands an address over stops answering once it hears of the claim.
		s.l2.Await(want, answersWithin)
	}
	if d := out.Members; d != nil {
		w := &members.Want{Self: d.Self, Watch: d.Watch, Facts: d.Facts, Claims: d.Claims, Known: d.Known}
		for _, peer := range d.Peers {
			w.Peers = append(w.Peers, members.Peer(peer))
		}
		s.members.Set(w)
	}
	s.metrics.announced(out.LAN.Addresses, out.Plan.L2.Answers)
	for _, c := range out.Changes {
		s.log(c)
		s.metrics.count(c)
	}
}

// linger gives the last gossip and the last status time to be sent; the API server may be
// gone, too.
func linger(ctx context.Context, p *publisher) {
	began := time.Now()
	for ctx.Err() == nil {
		time.Sleep(20 * time.Millisecond)
		if spent := time.Since(began); spent > time.Second || spent > 200*time.Millisecond && p.flushed() {
			break
		}
	}
}

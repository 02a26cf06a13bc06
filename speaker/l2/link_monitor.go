package l2

import (
	"net"
	"net/netip"
	"slices"
	"time"
)

// A node can lose a LAN while gossip works on another network: all speakers then believe
// that it answers, and no client reaches it. So, on the interfaces that Want.Nearby names,
// other hosts are sent ARP requests or neighbour solicitations: one host every 400 ms, by
// unicast, and all of them once it has not answered. Without loss that is five small
// packets a second, answers included; where gossip runs on the same network there are none.

// linkMonitor checks one interface: does any host of its LAN answer? Answers arrive on
// the responder's sockets.
type linkMonitor struct {
	probe   linkProbe
	due     time.Time // of the next step; zero: no host is to be asked
	hosts   []monitoredHost
	turn    int    // counts the questions to all hosts
	seen    uint64 // the responder's count of answers at the last step
	widened bool   // hosts include those in the kernel's neighbour table
}

// monitoredHost is a host that may be asked.
type monitoredHost struct {
	Host
	from netip.Addr // the address of this node that the host answers to
}

// maxGateways is how many gateways are asked beside the speakers.
const maxGateways = 4

// monitor decides which hosts to ask on an interface, and lets their answers through t.
func (a *Announcer) monitor(key responderKey, t *tables, nearby []Host) {
	v := a.monitors[key]
	if v == nil && len(nearby) == 0 {
		return
	}
	r := a.responders[key]
	if v == nil {
		v = &linkMonitor{due: time.Now(), seen: r.signs.Load()}
		a.monitors[key] = v
	}
	v.hosts, v.widened = nil, false
	if v.add(r.link, nearby...); len(v.hosts) == 0 { // without other hosts there is no node to hand over to
		if delete(a.monitors, key); v.probe.deaf {
			a.publishDeaf()
		}
		return
	}
	for _, g := range r.link.Gateways[:min(len(r.link.Gateways), maxGateways)] {
		v.add(r.link, Host{Address: g.WithZone("")})
	}
	v.allow(t)
}

// add adds hosts that can be asked.
func (v *linkMonitor) add(l link, hosts ...Host) {
	for _, h := range hosts {
		known := slices.ContainsFunc(v.hosts, func(s monitoredHost) bool { return s.Address == h.Address })
		if from := sourceFor(l, h.Address); from.IsValid() && !known && (l.arp || h.Address.Is6()) {
			v.hosts = append(v.hosts, monitoredHost{h, from})
		}
	}
}

// addNeighbours adds the hosts in the kernel's neighbour table of an interface, before the
// interface can be called deaf.
func (a *Announcer) addNeighbours(r *responder, v *linkMonitor) {
	v.widened = true
	all, err := a.Neighbours()
	if err != nil {
		a.opts.Log.Debug("neighbours are not known", "interface", r.key.name, "error", err)
		return
	}
	for _, q := range all {
		if slices.Contains(q.Interfaces, r.key.name) {
			v.add(r.link, Host{Address: q.Address})
		}
	}
	t := *r.ans.tables.Load()
	v.allow(&t)
	a.note(r.key, r.set(&t))
}

// allow lets the answers of the hosts through t.
func (v *linkMonitor) allow(t *tables) {
	t.near4, t.near6 = map[[4]byte]struct{}{}, map[[16]byte]struct{}{}
	for _, h := range v.hosts {
		if h.Address.Is4() {
			t.near4[h.Address.As4()] = struct{}{}
		} else {
			t.near6[h.Address.As16()] = struct{}{}
		}
	}
}

// probeLinks steps the monitors that are due and returns when the next one is; zero:
// there is none.
func (a *Announcer) probeLinks(now time.Time) (next time.Time) {
	changed, deafness := false, map[string]bool{}
	for key, v := range a.monitors {
		if r := a.responders[key]; !now.Before(v.due) {
			was := v.probe.deaf
			who := v.step(r.signs.Load(), now)
			changed = changed || was != v.probe.deaf
			if who == allHosts && !v.widened {
				a.addNeighbours(r, v)
			}
			a.probeHosts(r, v, who)
		}
		deafness[key.name] = v.probe.deaf
		if next.IsZero() || v.due.Before(next) {
			next = v.due
		}
	}
	a.metrics.judged(deafness)
	if changed {
		a.publishDeaf()
	}
	return next
}

func (v *linkMonitor) step(signs uint64, now time.Time) (who probeTarget) {
	heard := signs != v.seen
	v.seen = signs
	who, v.due = v.probe.step(now, heard)
	return who
}

// probeHosts asks hosts on one interface. One host is asked by unicast where its MAC is
// known; all hosts are asked by unicast and by broadcast alternately: some switches limit
// broadcast, and a host may have changed its MAC.
func (a *Announcer) probeHosts(r *responder, v *linkMonitor, who probeTarget) {
	hosts := v.hosts
	switch {
	case who == noHost || len(hosts) == 0:
		return
	case who == allHosts:
		v.turn++ // the one that was asked did not answer
	default:
		hosts = hosts[v.turn%len(hosts):][:1]
	}
	direct := who == oneHost || v.turn%2 == 0
	for _, h := range hosts {
		c := &r.v6
		if h.Address.Is4() {
			c = &r.v4
		}
		frame, err := question(r.link.mac, h.from, h.Address)
		if err != nil || c.writer == nil {
			continue
		}
		if to, err := net.ParseMAC(h.MAC); err == nil && len(to) == 6 && direct {
			copy(frame, to)
		}
		if err := c.writer.write(frame); err != nil {
			a.opts.Log.Debug("question lost", "address", h.Address, "interface", r.key.name, "error", err)
		}
	}
}

// publishDeaf publishes which interfaces are deaf.
func (a *Announcer) publishDeaf() {
	links := slices.Clone(a.Interfaces())
	for i := range links {
		was := links[i].Deaf
		links[i].Deaf = links[i].Up && a.isDeaf(links[i].Name)
		switch {
		case links[i].Deaf && !was:
			a.opts.Log.Warn("nobody on the LAN answers: what is announced there should move", "interface", links[i].Name)
		case was && !links[i].Deaf:
			a.opts.Log.Info("the LAN is not taken for deaf any more", "interface", links[i].Name)
		}
	}
	a.links.Store(&links)
	poke(a.watch)
}

func (a *Announcer) isDeaf(name string) bool {
	for key, v := range a.monitors {
		if key.name == name && v.probe.deaf {
			return true
		}
	}
	return false
}

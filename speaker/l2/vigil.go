package l2

import (
	"net"
	"net/netip"
	"slices"
	"time"
)

// A LAN can go deaf for one node while gossip lives on another network: then everybody
// believes that the node answers, and nobody hears it. So other hosts are asked for a
// sign of life, on the interfaces that Want.Nearby names: one of them every 400 ms,
// directly, and all once it has not answered. At rest that is five small packets a
// second, questions and answers; where gossip runs on the same network there are none.

// vigil watches over one interface: does anybody on its LAN hear us, and answer?
// Answers come by the responder's own sockets.
type vigil struct {
	pulse pulse
	due   time.Time // of the next step; zero: nobody is to be asked
	hosts []sought
	turn  int    // of questions to everyone
	seen  uint64 // signs of the responder so far
	wide  bool   // hosts include those that the kernel knows
}

// sought is a host that may be asked.
type sought struct {
	Host
	from netip.Addr // an address of ours that it can answer
}

// maxGateways bounds those that are asked beside the speakers.
const maxGateways = 4

// seek decides who is to be asked on an interface, and lets their answers through t.
func (a *Announcer) seek(key responderKey, t *tables, nearby []Host) {
	v := a.vigils[key]
	if v == nil && len(nearby) == 0 {
		return
	}
	r := a.responders[key]
	if v == nil {
		v = &vigil{due: time.Now(), seen: r.signs.Load()}
		a.vigils[key] = v
	}
	v.hosts, v.wide = nil, false
	if v.add(r.link, nearby...); len(v.hosts) == 0 { // who is alone could hand over to nobody
		if delete(a.vigils, key); v.pulse.deaf {
			a.tellDeaf()
		}
		return
	}
	for _, g := range r.link.Gateways[:min(len(r.link.Gateways), maxGateways)] {
		v.add(r.link, Host{Address: g.WithZone("")})
	}
	v.let(t)
}

// add adds hosts that can be asked.
func (v *vigil) add(l link, hosts ...Host) {
	for _, h := range hosts {
		known := slices.ContainsFunc(v.hosts, func(s sought) bool { return s.Address == h.Address })
		if from := sourceFor(l, h.Address); from.IsValid() && !known && (l.arp || h.Address.Is6()) {
			v.hosts = append(v.hosts, sought{h, from})
		}
	}
}

// widen adds the hosts that this machine has lately talked to on an interface, before
// it is believed that nobody is there.
func (a *Announcer) widen(r *responder, v *vigil) {
	v.wide = true
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
	v.let(&t)
	a.note(r.key, r.set(&t))
}

// let puts the hosts into tables.
func (v *vigil) let(t *tables) {
	t.near4, t.near6 = map[[4]byte]struct{}{}, map[[16]byte]struct{}{}
	for _, h := range v.hosts {
		if h.Address.Is4() {
			t.near4[h.Address.As4()] = struct{}{}
		} else {
			t.near6[h.Address.As16()] = struct{}{}
		}
	}
}

// watchOver asks whoever is due for a sign of life and says when to come back; zero:
// nobody is watched over.
func (a *Announcer) watchOver(now time.Time) (next time.Time) {
	changed, deafness := false, map[string]bool{}
	for key, v := range a.vigils {
		if r := a.responders[key]; !now.Before(v.due) {
			was := v.pulse.deaf
			who := v.step(r.signs.Load(), now)
			changed = changed || was != v.pulse.deaf
			if who == everyone && !v.wide {
				a.widen(r, v)
			}
			a.askOf(r, v, who)
		}
		deafness[key.name] = v.pulse.deaf
		if next.IsZero() || v.due.Before(next) {
			next = v.due
		}
	}
	a.metrics.judged(deafness)
	if changed {
		a.tellDeaf()
	}
	return next
}

func (v *vigil) step(signs uint64, now time.Time) (who whom) {
	heard := signs != v.seen
	v.seen = signs
	who, v.due = v.pulse.step(now, heard)
	return who
}

// askOf asks hosts on one interface. One is asked directly, where its MAC is known,
// and everyone in turns directly and by broadcast: some switches limit the latter, and
// a host may have got another MAC.
func (a *Announcer) askOf(r *responder, v *vigil, who whom) {
	hosts := v.hosts
	switch {
	case who == nobody || len(hosts) == 0:
		return
	case who == everyone:
		v.turn++ // the one that was asked did not answer
	default:
		hosts = hosts[v.turn%len(hosts):][:1]
	}
	direct := who == one || v.turn%2 == 0
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

// tellDeaf publishes which interfaces are deaf.
func (a *Announcer) tellDeaf() {
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
	for key, v := range a.vigils {
		if key.name == name && v.pulse.deaf {
			return true
		}
	}
	return false
}

package bfd

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"quayside.io/speaker/bfd/session"
	"quayside.io/speaker/due"
)

// ends say which session it is.
type ends struct {
	peer, local netip.Addr // without zones
	link, vrf   string
	multihop    bool
}

// port is where a session is heard.
type port struct {
	multihop, ipv6 bool
	vrf            string
}

func (e ends) port() port { return port{e.multihop, e.peer.Is6(), e.vrf} }

// device is what the sender is bound to; "": nothing.
func (e ends) device() string { return cmp.Or(e.link, e.vrf) }

// peer is a session with what it needs here.
type peer struct {
	ends
	name       string
	id         uint32
	minimumTTL uint8
	machine    *session.Session
	seen       session.Status
	since      time.Time

	sender  *sender   // nil: it could not be opened yet
	problem string    // why packets are not sent
	failing time.Time // since when; zero: they are sent
	leaving time.Time // when it goes, said goodbye or not; zero: it is wanted

	failures, starved      uint64
	starvedAt              time.Time
	sent, received, errors uint64

	turn due.Entry[*peer] // of this one
}

const (
	defaultInterval   = 300 * time.Millisecond
	minInterval       = 10 * time.Millisecond
	maxInterval       = time.Minute
	defaultMultiplier = 3
	defaultMinimumTTL = 254
)

// read turns what is wanted into ends and a configuration, or says why it cannot be.
func (s Session) read() (ends, session.Config, error) {
	e := ends{s.Peer.Unmap().WithZone(""), s.Local.Unmap().WithZone(""), s.Interface, s.VRF, s.Multihop}
	c := session.Config{Transmit: s.Transmit, Receive: s.Receive, Multiplier: s.Multiplier, Passive: s.Passive}
	if zone := s.Peer.Zone(); zone != "" {
		if e.link != "" && e.link != zone {
			return e, c, fmt.Errorf("peer %s is not on interface %s", s.Peer, e.link)
		}
		e.link = zone
	}
	switch {
	case !e.peer.IsValid() || e.peer.IsUnspecified() || e.peer.IsMulticast():
		return e, c, fmt.Errorf("%q is no address of a peer", s.Peer)
	case e.local.IsValid() && e.local.Is4() != e.peer.Is4():
		return e, c, fmt.Errorf("local address %s and peer %s are of two families", s.Local, s.Peer)
	case e.peer.IsLinkLocalUnicast() && e.peer.Is6() && e.link == "":
		return e, c, fmt.Errorf("peer %s is link-local: an interface is needed", s.Peer)
	case e.multihop && e.peer.IsLinkLocalUnicast():
		return e, c, fmt.Errorf("peer %s is link-local and cannot be several hops away", s.Peer)
	}
	for _, i := range []*time.Duration{&c.Transmit, &c.Receive} {
		if *i == 0 {
			*i = defaultInterval
		}
		if *i < minInterval || *i > maxInterval {
			return e, c, fmt.Errorf("an interval of %v is not between %v and %v", *i, minInterval, maxInterval)
		}
		*i = i.Truncate(time.Microsecond)
	}
	if c.Multiplier == 0 {
		c.Multiplier = defaultMultiplier
	}
	return e, c, nil
}

// ttl is the lowest TTL that a packet of the session may have.
func (s Session) ttl() uint8 {
	switch {
	case !s.Multihop:
		return 255
	case s.MinimumTTL == 0:
		return defaultMinimumTTL
	}
	return s.MinimumTTL
}

func (p *peer) status() Status {
	return Status{
		State: p.seen.State, Remote: p.seen.Remote, Since: p.since,
		Diag: p.seen.Diag.String(), RemoteDiag: p.seen.RemoteDiag.String(),
		Transmit: p.seen.Transmit, Receive: p.seen.Receive, Detection: p.seen.Detection,
		Failures: p.failures, Starved: p.starved, StarvedAt: p.starvedAt, Problem: p.problem,
	}
}

// serve does what is due for a session, and sets its next turn. Before it goes
// down for silence, what waits in the kernel is heard: it may be we who are slow.
func (d *Detector) serve(p *peer, now time.Time) {
	switch {
	case p.sender == nil && !p.leaving.IsZero():
		d.remove(p) // nobody can be told
		return
	case p.sender == nil && !d.open(p, now):
		return
	}
	if p.machine.Expired(now) {
		d.drain(now)
	}
	for {
		packet, some := p.machine.Tick(now, rand.Uint32())
		if !some {
			break
		}
		d.send(p, &packet, now)
	}
	d.observe(p, now)
	if !p.leaving.IsZero() && (p.machine.Gone() || !now.Before(p.leaving)) {
		d.remove(p)
		return
	}
	d.schedule(p, now)
}

// schedule sets the next turn of a session, or none.
func (d *Detector) schedule(p *peer, now time.Time) {
	at, some := p.machine.Next()
	if glance := now.Add(p.seen.Receive); p.seen.State == session.Up && glance.Before(at) {
		at = glance // or we might not notice that we did not run
	}
	if leave := p.leaving; !leave.IsZero() && (!some || leave.Before(at)) {
		at, some = leave, true
	}
	if some {
		d.queue.Set(&p.turn, at)
	} else {
		d.queue.Remove(&p.turn)
	}
}

// observe tells what has become of a session.
func (d *Detector) observe(p *peer, now time.Time) {
	before, st := p.seen, p.machine.Status()
	if st == before {
		return
	}
	p.seen, d.dirty = st, true
	if st.State == before.State {
		return
	}
	p.since = now
	if !p.leaving.IsZero() {
		return
	}
	log := d.opts.Log.With("peer", p.name, "address", p.peer)
	switch {
	case st.State == session.Up:
		log.Info("BFD session is up", "transmit", st.Transmit, "detection", st.Detection)
	case before.State != session.Up:
	case st.Diag == session.DiagNeighbor && st.Remote == session.AdminDown:
		log.Info("BFD session was ended by the peer", "reason", st.RemoteDiag.String())
	default:
		p.failures++
		log.Warn("BFD session failed", "reason", st.Diag.String(), "peerSays", st.RemoteDiag.String(), "detection", before.Detection)
	}
}

// send sends a packet. A socket that keeps failing is opened anew: its interface
// or its address may have gone and come back.
func (d *Detector) send(p *peer, packet *session.Packet, now time.Time) {
	if p.sender == nil {
		return
	}
	err := p.sender.send(packet)
	switch {
	case err == nil && p.failing.IsZero():
		p.sent++
		return
	case err == nil:
		p.sent++
		p.failing, p.problem, d.dirty = time.Time{}, "", true
		return
	case p.failing.IsZero():
		p.failing = now
	case now.Sub(p.failing) > retryAfter:
		p.failing = now
		p.sender.close()
		p.sender = nil
	}
	p.errors++
	d.blame(p, fmt.Errorf("packets to %s cannot be sent: %w", p.peer, err))
}

// blame says why a session cannot work.
func (d *Detector) blame(p *peer, err error) {
	if why := err.Error(); why != p.problem {
		p.problem, d.dirty = why, true
		d.opts.Log.Warn("BFD session cannot work", "peer", p.name, "error", err)
	}
}

// open gets the sockets of a session, or sets the time of the next attempt.
func (d *Detector) open(p *peer, now time.Time) bool {
	err := d.listen(p.port())
	if err == nil {
		p.sender, err = openSender(p.ends, d.taken)
	}
	if err != nil {
		d.blame(p, err)
		d.queue.Set(&p.turn, now.Add(retryAfter))
		return false
	}
	if p.failing.IsZero() && p.problem != "" {
		p.problem, d.dirty = "", true
	}
	return true
}

// taken reports that a session uses a source port already.
func (d *Detector) taken(port uint16) bool {
	for _, p := range d.have {
		if p.sender != nil && p.sender.port == port {
			return true
		}
	}
	return false
}

// remove forgets a session.
func (d *Detector) remove(p *peer) {
	d.queue.Remove(&p.turn)
	if p.sender != nil {
		p.sender.close()
		p.sender = nil
	}
	delete(d.byID, p.id)
	delete(d.have, p.ends)
	d.removed = true
	poke(d.wake) // its receiver may not be needed any more
}

// errPorts means that all source ports are in use.
var errPorts = errors.New("no source port from 49152 to 65535 is free")

package bfd

import (
	"time"

	"quayside.io/speaker/bfd/session"
)

// Why a packet is dropped, beside what session.Parse says; labels.
const (
	dropKernel    = "kernel"    // by the filter, or the queue was full
	dropTTL       = "ttl"       // it comes from too far away
	dropUnknown   = "unknown"   // no session is meant
	dropSource    = "source"    // it names a session with another peer
	dropAnonymous = "anonymous" // it names none, and the session is up
)

// hear takes a datagram to the session that it is for, or drops it. What the
// session then has to say goes out at once.
func (d *Detector) hear(r *receiver, m *message, now time.Time) {
	packet, bad := session.Parse(m.payload)
	if bad != "" {
		d.dropped[string(bad)]++
		return
	}
	p, why := d.find(r, m, &packet)
	if why != "" {
		d.dropped[why]++
		return
	}
	p.received++
	p.machine.Receive(&packet, now)
	d.serve(p, now)
}

// find says whose packet it is (RFC 5880 6.8.6, RFC 5881 3 and 5, RFC 5883 4), or
// why it is nobody's.
func (d *Detector) find(r *receiver, m *message, packet *session.Packet) (p *peer, why string) {
	if packet.YourDiscriminator != 0 {
		p = d.byID[packet.YourDiscriminator]
	} else {
		p = d.byEnds(r, m)
	}
	switch {
	case p == nil || p.sender == nil:
		return nil, dropUnknown
	case p.port() != r.port || !p.reaches(m):
		return nil, dropSource
	case m.ttl < int(p.minimumTTL):
		return nil, dropTTL
	case packet.YourDiscriminator == 0 && p.seen.State == session.Up:
		return nil, dropAnonymous
	}
	return p, ""
}

// byEnds finds the session between two addresses; one that says more about what
// it is comes first.
func (d *Detector) byEnds(r *receiver, m *message) *peer {
	link := d.linkName(m.index)
	for _, e := range [...]ends{
		{m.from, m.to, link, r.vrf, r.multihop}, {peer: m.from, link: link, vrf: r.vrf, multihop: r.multihop},
		{peer: m.from, local: m.to, vrf: r.vrf, multihop: r.multihop}, {peer: m.from, vrf: r.vrf, multihop: r.multihop},
	} {
		if p := d.have[e]; p != nil && p.leaving.IsZero() {
			return p
		}
	}
	return nil
}

// linkName is the interface of a session that has this index; "": of none.
func (d *Detector) linkName(index int) string {
	for _, p := range d.have {
		if p.sender != nil && p.sender.index == index {
			return p.link
		}
	}
	return ""
}

// reaches reports that a packet came between the session's ends.
func (p *peer) reaches(m *message) bool {
	return m.from == p.peer && (!p.local.IsValid() || m.to == p.local) && (p.sender.index == 0 || m.index == p.sender.index)
}

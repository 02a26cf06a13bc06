package bfd

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"quayside.io/speaker/bfd/session"
)

// apply makes what is there what is wanted: new sessions first.
func (d *Detector) apply(w *Want, now time.Time) {
	d.applied, d.refused, d.dirty = w, map[string]string{}, true
	wanted := map[ends]string{}
	for _, name := range slices.Sorted(maps.Keys(w.Sessions)) {
		s := w.Sessions[name]
		e, c, err := s.read()
		if other, twice := wanted[e]; err == nil && twice {
			err = fmt.Errorf("session %s is the same", other)
		}
		if err != nil {
			d.refused[name] = err.Error()
			continue
		}
		wanted[e] = name
		d.keep(e, c, name, s.ttl(), now)
	}
	for e, p := range d.have {
		if _, ok := wanted[e]; !ok && p.leaving.IsZero() {
			d.leave(p, now)
		}
	}
	d.refilter()
}

// keep makes a session be there and want c.
func (d *Detector) keep(e ends, c session.Config, name string, ttl uint8, now time.Time) {
	p := d.have[e]
	if p == nil {
		p = &peer{ends: e, id: d.newID(), since: now}
		p.turn.Value = p
		p.machine = session.New(p.id, c)
		p.seen = p.machine.Status()
		d.have[e], d.byID[p.id] = p, p
	}
	p.name, p.minimumTTL = name, ttl
	p.machine.Configure(c)
	if !p.leaving.IsZero() {
		p.leaving = time.Time{}
		p.machine.Enable()
	}
	d.queue.Set(&p.turn, now)
}

// leave begins to take the session down. Where another session goes to the same peer, the
// peer may answer that one by now: a later AdminDown would end it.
func (d *Detector) leave(p *peer, now time.Time) {
	p.leaving = now.Add(goodbye)
	for _, other := range d.have {
		if other != p && other.leaving.IsZero() && other.peer == p.peer && other.multihop == p.multihop {
			p.leaving = now
		}
	}
	p.machine.Disable()
	d.queue.Set(&p.turn, now)
}

// newID is a discriminator that nobody can guess (RFC 5880 10) and no session has.
func (d *Detector) newID() uint32 {
	for {
		var b [4]byte
		_, _ = rand.Read(b[:]) // it never fails
		id := binary.NativeEndian.Uint32(b[:])
		if _, taken := d.byID[id]; id != 0 && !taken {
			return id
		}
	}
}

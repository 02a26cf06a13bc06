package fsm

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// duel is two machines that dial each other over a network that delivers in any
// order, though in order on each connection.
type duel struct {
	m     [2]*Machine
	up    [2]int
	flows [][]delivery // one per direction of a connection, and one for each attempt
	next  int
}

type delivery struct {
	to int
	e  Event
}

func newDuel(restart bool, ids [2]uint32) *duel {
	d := &duel{}
	for i := range d.m {
		cfg := config()
		cfg.LocalASN, cfg.PeerASN, cfg.RouterID = uint32(64500+i), uint32(64501-i), ids[i]
		cfg.Restart = restart
		d.m[i] = New(cfg)
	}
	return d
}

// flow is the one that carries what machine i sends on a connection.
func (d *duel) flow(conn, i int) *[]delivery {
	at := 2*conn + i
	for len(d.flows) <= at {
		d.flows = append(d.flows, nil)
	}
	return &d.flows[at]
}

func (d *duel) do(t *rapid.T, now time.Time, i int, e Event, restart bool) {
	cfg := d.m[i].cfg
	for _, a := range slices.Clone(d.m[i].Step(now, e)) {
		send := func(e Event) {
			e.Conn = a.Conn
			f := d.flow(a.Conn, i)
			*f = append(*f, delivery{1 - i, e})
		}
		switch a.Kind {
		case Dial:
			d.next++
			f := d.flow(d.next, i)
			*f = append(*f, delivery{1 - i, Event{Kind: Accepted, Conn: d.next}})
			f = d.flow(d.next, 1-i)
			*f = append(*f, delivery{i, Event{Kind: Dialed, Conn: d.next}})
		case SendOpen:
			send(Event{Kind: OpenReceived, Open: Open{Version: 4, ASN: cfg.LocalASN, Hold: 90, ID: cfg.RouterID, Restart: restart}})
		case SendKeepalive:
			send(Event{Kind: KeepaliveReceived})
		case Notify:
			send(Event{Kind: NotificationReceived, Notification: a.Notification})
		case Close:
			send(Event{Kind: Lost, Reason: "closed"})
		case Up:
			d.up[i] = a.Conn
		case Down:
			d.up[i] = 0
		}
	}
}

// TestCollisionsEndInOneSession: whatever the order, both sides keep the same
// connection, and before long.
func TestCollisionsEndInOneSession(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		restart := rapid.Bool().Draw(t, "restart")
		ids := [2]uint32{rapid.Uint32Range(1, 3).Draw(t, "a"), rapid.Uint32Range(1, 3).Draw(t, "b")}
		d := newDuel(restart, ids)
		now := epoch()
		d.do(t, now, 0, Event{Kind: Start}, restart)
		d.do(t, now, 1, Event{Kind: Start}, restart)
		for round := 0; ; round++ {
			var busy []int
			for i, f := range d.flows {
				if len(f) > 0 {
					busy = append(busy, i)
				}
			}
			if len(busy) == 0 {
				if d.up[0] != 0 && d.up[0] == d.up[1] {
					return
				}
				for i := range d.m { // nothing is under way: the next timer
					if at := d.m[i].Deadline(); !at.IsZero() && at.After(now) {
						now = at
					}
				}
				d.do(t, now, 0, Event{Kind: Tick}, restart)
				d.do(t, now, 1, Event{Kind: Tick}, restart)
			} else {
				f := &d.flows[rapid.SampledFrom(busy).Draw(t, "flow")]
				head := (*f)[0]
				*f = (*f)[1:]
				now = now.Add(time.Millisecond)
				d.do(t, now, head.to, head.e, restart)
			}
			if round > 500 {
				t.Fatalf("no session: up %v", d.up)
			}
		}
	})
}

// TestDominantKeepsItsConnection is RFC 4271 6.8 case by case.
func TestDominantKeepsItsConnection(t *testing.T) {
	for _, c := range []struct {
		id, asn uint32 // the peer's
		keep    int    // 1 is ours, 2 the peer's
	}{{5, 65001, 1}, {20, 65001, 2}, {10, 65001, 2}, {10, 64000, 1}} {
		for _, first := range []int{1, 2} {
			cfg := config()
			cfg.Kinship = External
			m := New(cfg)
			open := peerOpen()
			open.ID, open.ASN = c.id, c.asn
			m.Step(epoch(), Event{Kind: Start})
			m.Step(epoch(), Event{Kind: Dialed, Conn: 1})
			m.Step(epoch(), Event{Kind: Accepted, Conn: 2})
			m.Step(epoch(), Event{Kind: OpenReceived, Conn: first, Open: open})
			var closed []int
			for _, a := range m.Step(epoch(), Event{Kind: OpenReceived, Conn: 3 - first, Open: open}) {
				if a.Kind == Close {
					closed = append(closed, a.Conn)
				}
			}
			if len(closed) != 1 || closed[0] != 3-c.keep {
				t.Errorf("%+v, OPEN on %d first: closed %v", c, first, closed)
			}
		}
	}
}

// TestRestartedPeerReplacesItsConnection is RFC 4724 section 5: without a word.
func TestRestartedPeerReplacesItsConnection(t *testing.T) {
	for _, both := range []bool{true, false} {
		cfg := config()
		cfg.Restart = true
		m := New(cfg)
		open := peerOpen()
		open.Restart = both
		for _, e := range []Event{{Kind: Start}, {Kind: Dialed, Conn: 1}, {Kind: OpenReceived, Conn: 1, Open: open}, {Kind: KeepaliveReceived, Conn: 1}} {
			m.Step(epoch(), e)
		}
		m.Step(epoch(), Event{Kind: Accepted, Conn: 2})
		actions := slices.Clone(m.Step(epoch(), Event{Kind: OpenReceived, Conn: 2, Open: open}))
		m.Step(epoch(), Event{Kind: KeepaliveReceived, Conn: 2})
		replaced := slices.ContainsFunc(actions, func(a Action) bool { return a.Kind == Close && a.Conn == 1 })
		if replaced != both || slices.ContainsFunc(actions, func(a Action) bool { return a.Kind == Notify }) {
			t.Errorf("both speak it: %v; %v", both, actions)
		}
		if m.State() != Established {
			t.Errorf("is %v", m.State())
		}
	}
}

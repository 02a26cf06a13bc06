package fsm

import (
	"strings"
	"testing"
	"time"
)

// turn is an event some time after the last one, and what the machine does then.
type turn struct {
	after time.Duration
	Event
	did string
}

// TestScripts plays what takes several events, in full: each action in its place, and
// nothing beside.
func TestScripts(t *testing.T) {
	const second = time.Second
	start, tick := Event{Kind: Start}, Event{Kind: Tick}
	dialed := func(conn int) Event { return Event{Kind: Dialed, Conn: conn} }
	accepted := func(conn int) Event { return Event{Kind: Accepted, Conn: conn} }
	alive := func(conn int) Event { return Event{Kind: KeepaliveReceived, Conn: conn} }
	opens := func(conn int) Event { return Event{Kind: OpenReceived, Conn: conn, Open: peerOpen()} }
	lost := func(conn int) Event { return Event{Kind: Lost, Conn: conn, Reason: "reset"} }
	restarts := func(conn int) Event {
		e := opens(conn)
		e.Open.Restart = true
		return e
	}
	const collided = " Cease, Connection Collision Resolution; close "
	for name, turns := range map[string][]turn{
		"three KEEPALIVEs in a hold time": {
			{0, start, "dial"}, {0, dialed(1), "send OPEN 1"}, {0, opens(1), "send KEEPALIVE 1"}, {0, alive(1), "up 1"},
			{3*second - time.Millisecond, tick, ""}, {time.Millisecond, tick, "send KEEPALIVE 1"}, {0, tick, ""}, {2 * second, alive(1), ""},
			{second, tick, "send KEEPALIVE 1"}, {3 * second, tick, "send KEEPALIVE 1"}, {3 * second, tick, "send KEEPALIVE 1"},
			{2*second - 1, tick, ""},
			{1, tick, "notify 1 Hold Timer Expired; close 1; down 1 (hold timer expired: nothing heard for 9s)"},
		},
		"KEEPALIVEs and the hold time begin with the OPEN": {
			{0, start, "dial"}, {0, dialed(1), "send OPEN 1"}, {second, opens(1), "send KEEPALIVE 1"},
			{3 * second, tick, "send KEEPALIVE 1"}, {3 * second, tick, "send KEEPALIVE 1"},
			{3 * second, tick, "notify 1 Hold Timer Expired; close 1; failed 1 (hold timer expired: nothing heard for 9s)"},
		},
		"the peer's second connection replaces its first": {
			{0, start, "dial"}, {0, accepted(1), "send OPEN 1"},
			{0, accepted(2), "notify 1" + collided + "1; send OPEN 2"}, {0, opens(2), "send KEEPALIVE 2"},
			{0, accepted(3), "notify 2" + collided + "2; send OPEN 3"},
		},
		"and not the one that we opened": {
			{0, start, "dial"}, {0, dialed(1), "send OPEN 1"}, {0, accepted(2), "send OPEN 2"},
			{0, accepted(3), "notify 2" + collided + "2; send OPEN 3"}, {0, opens(1), "send KEEPALIVE 1"},
			{0, alive(1), "notify 3" + collided + "3; up 1"}, {0, accepted(4), "notify 4" + collided + "4"},
		},
		"a session ends the attempt at another": {
			{0, start, "dial"}, {0, accepted(1), "send OPEN 1"}, {0, opens(1), "send KEEPALIVE 1"},
			{0, alive(1), "cancel the attempt; up 1"}, {0, dialed(2), "close 2"},
		},
		"and the plan to make one": {
			{0, start, "dial"}, {0, Event{Kind: DialFailed}, "failed"}, {0, accepted(1), "send OPEN 1"},
			{0, opens(1), "send KEEPALIVE 1"}, {0, alive(1), "up 1"}, {second, tick, ""},
		},
		"no third where the second may be the peer's after a restart": {
			{0, start, "dial"}, {0, dialed(1), "send OPEN 1"}, {0, restarts(1), "send KEEPALIVE 1"}, {0, alive(1), "up 1"},
			{0, accepted(2), "send OPEN 2"}, {0, accepted(3), "notify 2" + collided + "2; send OPEN 3"},
			{0, restarts(3), "close 1; down 1 (the peer restarted); send KEEPALIVE 3"}, {0, alive(3), "up 3"},
		},
		"a restart over a session that the peer opened": {
			{0, start, "dial"}, {0, accepted(1), "send OPEN 1"}, {0, restarts(1), "send KEEPALIVE 1"}, {0, alive(1), "cancel the attempt; up 1"},
			{0, accepted(2), "send OPEN 2"}, {0, opens(2), "notify 2" + collided + "2"}, {0, accepted(3), "send OPEN 3"},
			{0, restarts(3), "close 1; down 1 (the peer restarted); send KEEPALIVE 3"},
		},
		"a restart after a session that lasted": {
			{0, start, "dial"}, {0, Event{Kind: DialFailed}, "failed"}, {second, tick, "dial"}, {0, dialed(1), "send OPEN 1"},
			{0, restarts(1), "send KEEPALIVE 1"}, {0, alive(1), "up 1"}, {30 * second, accepted(2), "send OPEN 2"},
			{0, restarts(2), "close 1; down 1 (the peer restarted); send KEEPALIVE 2"}, {0, lost(2), "close 2; failed 2 (reset)"},
			{100 * time.Millisecond, tick, "dial"},
		},
		"a restart after one that did not": {
			{0, start, "dial"}, {0, Event{Kind: DialFailed}, "failed"}, {second, tick, "dial"}, {0, dialed(1), "send OPEN 1"},
			{0, restarts(1), "send KEEPALIVE 1"}, {0, alive(1), "up 1"}, {29 * second, accepted(2), "send OPEN 2"},
			{0, restarts(2), "close 1; down 1 (the peer restarted); send KEEPALIVE 2"}, {0, lost(2), "close 2; failed 2 (reset)"},
			{100 * time.Millisecond, tick, ""}, {100 * time.Millisecond, tick, "dial"},
		},
		"no attempt while one that we opened goes on": {
			{0, start, "dial"}, {0, dialed(1), "send OPEN 1"}, {0, accepted(2), "send OPEN 2"},
			{0, lost(2), "close 2; failed 2 (reset)"}, {second, tick, ""}, {0, lost(1), "close 1; failed 1 (reset)"}, {second, tick, "dial"},
		},
		"who is started anew waits as at first": {
			{0, start, "dial"}, {0, Event{Kind: DialFailed}, "failed"}, {second, tick, "dial"},
			{0, Event{Kind: DialFailed}, "failed"}, {second, tick, "dial"}, {0, Event{Kind: Stop}, "cancel the attempt"},
			{0, start, "dial"}, {0, Event{Kind: DialFailed}, "failed"}, {99 * time.Millisecond, tick, ""}, {time.Millisecond, tick, "dial"},
		},
		"and after a connection that did not become a session longer": {
			{0, start, "dial"}, {0, dialed(1), "send OPEN 1"}, {40 * second, tick,
				"notify 1 Hold Timer Expired; close 1; failed 1 (the peer was not done with OpenSent in 30s)"},
			{100 * time.Millisecond, tick, "dial"}, {0, dialed(2), "send OPEN 2"}, {0, lost(2), "close 2; failed 2 (reset)"},
			{199 * time.Millisecond, tick, ""}, {time.Millisecond, tick, "dial"},
		},
	} {
		cfg := config()
		cfg.Restart = strings.Contains(name, "restart")
		m, now := New(cfg), epoch()
		for i, turn := range turns {
			now = now.Add(turn.after)
			if asked := due(m.Deadline(), now); turn.Kind == Tick && asked != (turn.did != "") {
				t.Errorf("%s: turn %d: a Tick was asked for: %v", name, i, asked)
			}
			if got := m.does(now, turn.Event); got != turn.did {
				t.Errorf("%s: turn %d, %v: %q, wanted %q", name, i, turn.Kind, got, turn.did)
			}
		}
	}
}

// TestWordsOfNotifications: what a peer sends is read with care, and what we send fits.
func TestWordsOfNotifications(t *testing.T) {
	for want, n := range map[string]Notification{
		"Cease, subcode 99":                                 {Code: Cease, Subcode: 99},
		"code 200 subcode 3":                                {Code: 200, Subcode: 3},
		"Hold Timer Expired":                                {Code: HoldTimerExpired},
		`Cease, Administrative Reset: "maintenance"`:        Ceasing(AdminReset, "maintenance"),
		`Cease, Administrative Shutdown: " ab"`:             Ceasing(AdminShutdown, " a\x1f\n\x7fb"),
		"Cease, Administrative Shutdown":                    Ceasing(AdminShutdown, ""),
		"Cease, Connection Collision Resolution":            Ceasing(Collision, "none may be sent here"),
		"Cease, Connection Rejected":                        {Code: Cease, Subcode: 5, Data: []byte("\x03abc")},
		"Message Header Error, Connection Not Synchronized": {Code: HeaderError, Subcode: 1, Data: []byte("\x03abc")},
	} {
		if got := n.String(); got != want {
			t.Errorf("%+v: %q, wanted %q", n, got, want)
		}
	}
	for text, keeps := range map[string]int{
		strings.Repeat("x", 255): 255, strings.Repeat("x", 256): 255, strings.Repeat("ä", 128): 254, "\xff": 0,
	} {
		if n := Ceasing(AdminShutdown, text); int(n.Data[0]) != keeps || n.Communication() != text[:keeps] {
			t.Errorf("%d bytes: %d are sent, %q read", len(text), n.Data[0], n.Communication())
		}
	}
}

package fsm

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func epoch() time.Time { return time.Unix(1_000_000, 0) }

func config() Config {
	return Config{
		LocalASN: 64500, PeerASN: 65001, RouterID: 10, Hold: 9 * time.Second, Open: 30 * time.Second,
		FirstWait: 100 * time.Millisecond, MaxWait: 10 * time.Second, Calm: 30 * time.Second,
		Random: func() float64 { return 1 - 1e-9 },
	}
}

func peerOpen() Open { return Open{Version: 4, ASN: 65001, Hold: 90, ID: 20} }

// reach brings a new machine into a state, with connection 1 where there is one.
func reach(t interface{ Fatalf(string, ...any) }, cfg Config, s State) *Machine {
	m := New(cfg)
	script := map[State][]Event{
		Idle:        nil,
		Connect:     {{Kind: Start}},
		Active:      {{Kind: Start}, {Kind: DialFailed, Reason: "refused"}},
		OpenSent:    {{Kind: Start}, {Kind: Dialed, Conn: 1}},
		OpenConfirm: {{Kind: Start}, {Kind: Dialed, Conn: 1}, {Kind: OpenReceived, Conn: 1, Open: peerOpen()}},
		Established: {{Kind: Start}, {Kind: Dialed, Conn: 1}, {Kind: OpenReceived, Conn: 1, Open: peerOpen()}, {Kind: KeepaliveReceived, Conn: 1}},
	}
	for _, e := range script[s] {
		m.Step(epoch(), e)
	}
	if m.State() != s {
		t.Fatalf("is %v, not %v", m.State(), s)
	}
	return m
}

func states() []State { return []State{Idle, Active, Connect, OpenSent, OpenConfirm, Established} }

// events are one of each kind, on connection 1 where there is a choice.
func events() []Event {
	bad := Notification{Code: HeaderError, Subcode: 2}
	return []Event{
		{Kind: Start}, {Kind: Stop, Notification: Notification{Code: Cease, Subcode: AdminShutdown}}, {Kind: Dialed, Conn: 2},
		{Kind: DialFailed, Reason: "refused"}, {Kind: Accepted, Conn: 2}, {Kind: Lost, Conn: 1, Reason: "reset"},
		{Kind: Malformed, Conn: 1, Notification: bad, Reason: "too long"}, {Kind: OpenReceived, Conn: 1, Open: peerOpen()},
		{Kind: KeepaliveReceived, Conn: 1}, {Kind: UpdateReceived, Conn: 1}, {Kind: RefreshReceived, Conn: 1},
		{Kind: NotificationReceived, Conn: 1, Notification: Ceasing(AdminShutdown, "upgrade")}, {Kind: Tick},
	}
}

func (a Action) String() string {
	name := [...]string{"dial", "cancel the attempt", "send OPEN", "send KEEPALIVE", "notify", "close", "up", "down", "failed"}[a.Kind]
	if a.Conn != 0 {
		name += fmt.Sprintf(" %d", a.Conn)
	}
	if a.Notification.Code != 0 {
		name += " " + a.Notification.String()
	}
	if a.Reason != "" {
		name += " (" + a.Reason + ")"
	}
	return name
}

// does plays an event and returns what the machine does then, in words.
func (m *Machine) does(now time.Time, e Event) string {
	var did []string
	for _, a := range m.Step(now, e) {
		did = append(did, a.String())
	}
	return strings.Join(did, "; ")
}

func rewrite() bool {
	return flag.Lookup("update") != nil && flag.Lookup("update").Value.String() == "true"
}

func TestMain(m *testing.M) {
	flag.Bool("update", false, "write testdata/transitions.txt anew")
	os.Exit(m.Run())
}

// TestEveryStateKnowsEveryEvent compares with a table that a person can read.
func TestEveryStateKnowsEveryEvent(t *testing.T) {
	var table strings.Builder
	table.WriteString("# state, event, next state: actions. Connection 1 is that of the state, 2 another. Ticks come an hour later.\n")
	for _, s := range states() {
		for _, e := range events() {
			m := reach(t, config(), s)
			now := epoch()
			if e.Kind == Tick {
				now = now.Add(time.Hour)
			}
			did := m.does(now, e)
			fmt.Fprintf(&table, "%v, %v, %v: %s\n", s, e.Kind, m.State(), did)
		}
	}
	path := filepath.Join("testdata", "transitions.txt")
	if rewrite() {
		if err := os.WriteFile(path, []byte(table.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := table.String(); got != string(want) {
		for i, line := range strings.Split(got, "\n") {
			if lines := strings.Split(string(want), "\n"); i >= len(lines) || lines[i] != line {
				t.Errorf("line %d is now %q", i+1, line)
			}
		}
	}
}

// TestNoStateLastsForEver: a connection that says nothing more is ended.
func TestNoStateLastsForEver(t *testing.T) {
	for _, hold := range []time.Duration{0, 9 * time.Second} {
		for _, s := range []State{OpenSent, OpenConfirm, Established} {
			cfg := config()
			cfg.Hold = hold
			m := reach(t, cfg, s)
			closed := false
			for range 1000 {
				at := m.Deadline()
				if at.IsZero() {
					break
				}
				closed = closed || slices.ContainsFunc(m.Step(at, Event{Kind: Tick}), func(a Action) bool { return a.Kind == Close && a.Conn == 1 })
				if closed {
					break
				}
			}
			if forEver := s == Established && hold == 0; closed == forEver {
				t.Errorf("%v with hold time %v: ended %v", s, hold, closed)
			}
		}
	}
}

func TestHoldTimerRestarts(t *testing.T) {
	m := reach(t, config(), Established)
	now := epoch()
	for range 20 {
		now = now.Add(8 * time.Second)
		if a := m.Step(now, Event{Kind: UpdateReceived, Conn: 1}); len(a) != 0 {
			t.Fatal(a)
		}
		m.Step(now, Event{Kind: Tick})
	}
	if m.State() != Established {
		t.Fatal(m.State())
	}
	m.Heard(1, now.Add(5*time.Second))
	m.Step(now.Add(13*time.Second), Event{Kind: Tick})
	if m.State() != Established {
		t.Error("what was heard did not count")
	}
	m.Step(now.Add(14*time.Second), Event{Kind: Tick})
	if m.State() == Established {
		t.Error("the hold timer did not end it")
	}
}

func TestTermsAreTheLower(t *testing.T) {
	for _, c := range []struct {
		ours, keepalive time.Duration
		theirs          uint16
		hold, beat      time.Duration
	}{
		{90 * time.Second, 0, 30, 30 * time.Second, 10 * time.Second},
		{3 * time.Second, 0, 180, 3 * time.Second, time.Second},
		{0, 0, 90, 0, 0},
		{90 * time.Second, 0, 0, 0, 0},
		{90 * time.Second, time.Second, 90, 90 * time.Second, time.Second},
		{90 * time.Second, 60 * time.Second, 9, 9 * time.Second, 3 * time.Second},
	} {
		cfg := config()
		cfg.Hold, cfg.Keepalive = c.ours, c.keepalive
		m := New(cfg)
		open := peerOpen()
		open.Hold = c.theirs
		m.Step(epoch(), Event{Kind: Start})
		m.Step(epoch(), Event{Kind: Dialed, Conn: 1})
		m.Step(epoch(), Event{Kind: OpenReceived, Conn: 1, Open: open})
		if got := m.Terms(1); got.Hold != c.hold || got.Keepalive != c.beat {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

func TestOpenIsJudged(t *testing.T) {
	for _, c := range []struct {
		kinship Kinship
		change  func(*Open)
		want    uint8 // subcode; 0: accepted
	}{
		{Exactly, func(*Open) {}, 0},
		{Exactly, func(o *Open) { o.ASN = 65002 }, badPeerAS},
		{Exactly, func(o *Open) { o.ASN = 0 }, badPeerAS},
		{Exactly, func(o *Open) { o.Version = 3 }, unsupportedVersion},
		{Exactly, func(o *Open) { o.ID = 0 }, badIdentifier},
		{Exactly, func(o *Open) { o.ID = 10 }, 0}, // RFC 6286: only within an AS
		{Exactly, func(o *Open) { o.Hold = 1 }, unacceptableHoldTime},
		{Exactly, func(o *Open) { o.Hold = 2 }, unacceptableHoldTime},
		{Exactly, func(o *Open) { o.Hold = 0 }, 0},
		{Exactly, func(o *Open) { o.Hold = 3 }, 0},
		{Internal, func(o *Open) {}, badPeerAS},
		{Internal, func(o *Open) { o.ASN = 64500 }, 0},
		{Internal, func(o *Open) { o.ASN, o.ID = 64500, 10 }, badIdentifier},
		{External, func(o *Open) { o.ASN = 4_200_000_000 }, 0},
		{External, func(o *Open) { o.ASN = 64500 }, badPeerAS},
		{External, func(o *Open) { o.ASN = 0 }, badPeerAS},
	} {
		cfg := config()
		cfg.Kinship = c.kinship
		open := peerOpen()
		c.change(&open)
		m := reach(t, cfg, OpenSent)
		var sub uint8
		for _, a := range m.Step(epoch(), Event{Kind: OpenReceived, Conn: 1, Open: open}) {
			if a.Kind == Notify {
				sub = a.Notification.Subcode
			}
		}
		if sub != c.want || (sub == 0) != (m.State() == OpenConfirm) {
			t.Errorf("kinship %v, %+v: subcode %d, %v", c.kinship, open, sub, m.State())
		}
	}
}

// TestPauseBetweenAttempts: from 100 ms, doubled to the most, and anew only
// after a session that lasted.
func TestPauseBetweenAttempts(t *testing.T) {
	m := New(config())
	now := epoch()
	m.Step(now, Event{Kind: Start})
	pause := func() time.Duration {
		m.Step(now, Event{Kind: DialFailed, Reason: "refused"})
		d := m.Deadline().Sub(now).Round(time.Millisecond)
		now = m.Deadline()
		m.Step(now, Event{Kind: Tick})
		return d
	}
	var got []time.Duration
	for range 9 {
		got = append(got, pause())
	}
	ms := time.Millisecond
	if want := []time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 6400 * ms, 10000 * ms, 10000 * ms}; !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	session := func(lasts time.Duration) time.Duration {
		m.Step(now, Event{Kind: Dialed, Conn: 1})
		m.Step(now, Event{Kind: OpenReceived, Conn: 1, Open: peerOpen()})
		m.Step(now, Event{Kind: KeepaliveReceived, Conn: 1})
		now = now.Add(lasts)
		m.Step(now, Event{Kind: Lost, Conn: 1, Reason: "reset"})
		d := m.Deadline().Sub(now).Round(time.Millisecond)
		now = m.Deadline()
		m.Step(now, Event{Kind: Tick})
		return d
	}
	if d := session(time.Second); d != 10*time.Second {
		t.Errorf("after a session of a second: %v", d)
	}
	if d := session(time.Minute); d != 100*ms {
		t.Errorf("after a session of a minute: %v", d)
	}
}

// TestInvariants throws events at a machine in any order.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := config()
		cfg.Passive = rapid.Bool().Draw(t, "passive")
		cfg.Restart = rapid.Bool().Draw(t, "restart")
		m, now, last := New(cfg), epoch(), 0
		up, open, dialing := 0, map[int]bool{}, false
		for range rapid.IntRange(1, 60).Draw(t, "n") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(5*time.Second)).Draw(t, "pause")))
			e := rapid.SampledFrom(events()).Draw(t, "event")
			switch e.Kind {
			case Accepted, Dialed:
				if e.Kind == Dialed && !dialing {
					continue
				}
				last++
				e.Conn = last
				open[last] = true
				dialing = dialing && e.Kind != Dialed
			case DialFailed:
				dialing = false
			case OpenReceived:
				e.Conn = rapid.IntRange(0, last).Draw(t, "conn")
				e.Open.Restart = rapid.Bool().Draw(t, "peer restarts")
				e.Open.ID = rapid.Uint32Range(5, 15).Draw(t, "id")
			default:
				e.Conn = rapid.IntRange(0, last).Draw(t, "conn")
			}
			for _, a := range m.Step(now, e) {
				if a.Conn != 0 && !open[a.Conn] && a.Kind != Down && a.Kind != Failed {
					t.Fatalf("%v: %v of a connection that is closed", e, a)
				}
				switch a.Kind {
				case Dial:
					dialing = true
				case CancelDial:
					dialing = false
				case Close:
					delete(open, a.Conn)
				case Up:
					if up != 0 {
						t.Fatalf("%d is up, and so is %d", a.Conn, up)
					}
					up = a.Conn
				case Down:
					if up != a.Conn {
						t.Fatalf("%d is down, and %d was up", a.Conn, up)
					}
					up = 0
				}
			}
			if len(open) > 2 {
				t.Fatalf("connections %v", open)
			}
			if (up != 0) != (m.State() == Established) {
				t.Fatalf("%v while %d is up", m.State(), up)
			}
			if s := m.State(); s != Idle && s != Connect && !(s == Active && cfg.Passive) && m.Deadline().IsZero() {
				t.Fatalf("nothing ends %v", s)
			}
		}
		m.Step(now, Event{Kind: Stop})
		if m.State() != Idle || !m.Deadline().IsZero() {
			t.Fatalf("stopped: %v, %v", m.State(), m.Deadline())
		}
	})
}

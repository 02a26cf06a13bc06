package bfd

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"quayside.io/speaker/bfd/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ms = time.Millisecond

// running is a Detector that runs until the test ends, or end is called.
type running struct {
	*Detector
	t        testing.TB
	registry *prometheus.Registry
	end      func()
}

// lockedBuffer is a log that may be read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func start(t testing.TB) *running {
	t.Helper()
	log, registry := &lockedBuffer{}, prometheus.NewPedanticRegistry()
	r := &running{t: t, registry: registry, Detector: New(Options{Log: slog.New(slog.NewTextHandler(log, nil)), Registerer: registry})}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = r.Run(ctx) }()
	r.end = func() { cancel(); <-done }
	t.Cleanup(func() {
		last := r.State()
		r.end()
		if t.Failed() {
			t.Logf("%s\n%+v", log, last)
		}
	})
	return r
}

// await waits until the state of all sessions is as told.
func (r *running) await(what string, ok func(map[string]Status) bool) {
	r.t.Helper()
	for late := time.After(20 * time.Second); !ok(r.State()); {
		select {
		case <-r.Watch():
		case <-late:
			r.t.Fatalf("never: %s", what)
		}
	}
}

func (r *running) awaitUp(names ...string) {
	r.t.Helper()
	r.await(fmt.Sprint(names, " up"), func(all map[string]Status) bool {
		for _, name := range names {
			if all[name].State != session.Up {
				return false
			}
		}
		return true
	})
}

// counter is the sum of one metric over its labels.
func (r *running) counter(name, label string) (sum float64) {
	r.t.Helper()
	families, err := r.registry.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && (label == "" || m.GetLabel()[0].GetValue() == label) {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// talk are the two ends of a session on the loopback interface, both of which
// one Detector holds.
func talk(n int, multihop bool) (here, there Session) {
	a, b := netip.AddrFrom4([4]byte{127, 1, byte(n), 1}), netip.AddrFrom4([4]byte{127, 1, byte(n), 2})
	s := Session{Transmit: 50 * ms, Receive: 50 * ms, Multihop: multihop}
	here, there = s, s
	here.Local, here.Peer = a, b
	there.Local, there.Peer = b, a
	return here, there
}

func TestTalksToItself(t *testing.T) {
	for name, multihop := range map[string]bool{"single hop": false, "multihop": true} {
		t.Run(name, func(t *testing.T) {
			d := start(t)
			here, there := talk(1, multihop)
			here.Interface = "lo"
			there.Passive, there.Multiplier, there.Receive = true, 5, 80*ms
			d.Set(&Want{map[string]Session{"here": here, "there": there}})
			d.await("negotiated", func(all map[string]Status) bool {
				a, b := all["here"], all["there"]
				return a.State == session.Up && b.State == session.Up && a.Remote == session.Up &&
					a.Transmit == 80*ms && a.Receive == 50*ms && a.Detection == 250*ms &&
					b.Transmit == 50*ms && b.Receive == 80*ms && b.Detection == 240*ms
			})
			for name, st := range d.State() {
				if st.Diag != "" || st.Problem != "" || st.Failures != 0 || st.Since.IsZero() {
					t.Errorf("%s: %+v", name, st)
				}
			}
			if n := d.counter("quayside_bfd_session_up", ""); n != 2 {
				t.Errorf("%v sessions are counted as up", n)
			}
			if d.counter("quayside_bfd_packets_sent_total", "here") == 0 || d.counter("quayside_bfd_packets_received_total", "here") == 0 {
				t.Error("no packet was counted")
			}
		})
	}
}

// TestNeedsNoPrivilege runs TestTalksToItself as nobody.
func TestNeedsNoPrivilege(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to be nobody; without it all tests have no privilege")
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestTalksToItself$", "-test.v", "-test.timeout=1m")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}, Pdeathsig: syscall.SIGKILL}
	cmd.Dir = "/"
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestTalksToItself") {
		t.Errorf("%v\n%s", err, out)
	}
}

// Sessions that are wanted as before stay as they are, whatever else changes,
// and so do those whose timings or names change.
func TestChangesTouchOnlyWhatChanged(t *testing.T) {
	d := start(t)
	want := map[string]Session{}
	for i, name := range []string{"same", "timings", "goes", "name"} {
		want[name], want[name+" there"] = talk(i, false)
	}
	d.Set(&Want{maps.Clone(want)})
	d.awaitUp("same", "timings", "goes", "name", "same there", "timings there", "goes there", "name there")
	before := d.State()

	next := maps.Clone(want)
	timings := next["timings"]
	timings.Transmit, timings.Receive, timings.Multiplier = 120*ms, 30*ms, 4
	next["timings"] = timings
	next["new name"] = next["name"]
	delete(next, "name")
	delete(next, "goes")
	next["comes"], next["comes there"] = talk(9, false)
	d.Set(&Want{next})
	d.await("the new timings", func(all map[string]Status) bool {
		return all["timings"].Transmit == 120*ms && all["timings there"].Detection == 480*ms && all["timings there"].Transmit == 50*ms && all["timings"].Receive == 50*ms
	})
	d.awaitUp("comes", "comes there", "new name", "timings", "same")
	d.await("the end that went has said so", func(all map[string]Status) bool { return all["goes there"].Remote == session.AdminDown })
	after := d.State()
	for was, is := range map[string]string{"same": "same", "same there": "same there", "timings": "timings", "timings there": "timings there", "name": "new name"} {
		if b, a := before[was], after[is]; !a.Since.Equal(b.Since) || a.Failures != 0 {
			t.Errorf("%s was touched:\nbefore %+v\n after %+v", was, b, a)
		}
	}
	if st, there := after["goes"]; there || after["goes there"].Failures != 0 {
		t.Errorf("what was ended is %+v, and for the other end %+v", st, after["goes there"])
	}

	d.Set(&Want{want}) // at once: the same end again, while it may still say goodbye
	d.awaitUp("goes", "goes there", "name")
	if st := d.State()["goes there"]; st.Failures != 0 {
		t.Errorf("%+v", st)
	}
}

func TestRefusesWhatCannotBe(t *testing.T) {
	d := start(t)
	good, _ := talk(1, false)
	want := map[string]Session{"a good one": good, "b the same": good}
	for name, change := range map[string]func(*Session){
		"no peer":      func(s *Session) { s.Peer = netip.Addr{} },
		"unspecified":  func(s *Session) { s.Peer = netip.IPv4Unspecified() },
		"multicast":    func(s *Session) { s.Peer = netip.MustParseAddr("224.0.0.1") },
		"two families": func(s *Session) { s.Peer = netip.MustParseAddr("2001:db8::1") },
		"no zone":      func(s *Session) { s.Local, s.Peer = netip.Addr{}, netip.MustParseAddr("fe80::1") },
		"two interfaces": func(s *Session) {
			s.Local, s.Peer, s.Interface = netip.Addr{}, netip.MustParseAddr("fe80::1%lo"), "eth7"
		},
		"far link-local": func(s *Session) { s.Local, s.Peer, s.Multihop = netip.Addr{}, netip.MustParseAddr("fe80::1%lo"), true },
		"too quick":      func(s *Session) { s.Transmit = 9 * ms },
		"too slow":       func(s *Session) { s.Receive = 61 * time.Second },
		"no interface":   func(s *Session) { s.Interface = "nowhere0" },
		"not our own":    func(s *Session) { s.Local = netip.MustParseAddr("192.0.2.7") },
	} {
		s := good
		change(&s)
		want[name] = s
	}
	d.Set(&Want{want})
	d.await("problems", func(all map[string]Status) bool {
		for name := range want {
			if st, there := all[name]; !there || (st.Problem == "") != (name == "a good one") {
				return false
			}
		}
		return true
	})
	if why := d.State()["b the same"].Problem; !strings.Contains(why, "a good one") {
		t.Errorf("a second one is refused because %q", why)
	}
}

// Another daemon may hold the port, and let it go.
func TestWaitsForThePort(t *testing.T) {
	first, second := start(t), start(t)
	here, there := talk(1, false)
	first.Set(&Want{map[string]Session{"here": here}})
	first.await("listens", func(all map[string]Status) bool {
		return len(all) == 1 && first.counter("quayside_bfd_packets_sent_total", "") > 0
	})
	second.Set(&Want{map[string]Session{"here": here, "there": there}})
	second.await("a problem", func(all map[string]Status) bool {
		return strings.Contains(all["here"].Problem, "UDP port 3784 is taken")
	})
	first.end()
	second.awaitUp("here", "there")
	if why := second.State()["here"].Problem; why != "" {
		t.Errorf("up, and still: %s", why)
	}
}

// starve keeps every goroutine of the Detector from running.
func (r *running) starve(d time.Duration) {
	r.mu.Lock()
	time.Sleep(d)
	r.unlock()
}

func TestStarvationIsNoFailure(t *testing.T) {
	d := start(t)
	here, there := talk(1, false)
	d.Set(&Want{map[string]Session{"here": here, "there": there}})
	d.awaitUp("here", "there")
	d.await("both are quick", func(all map[string]Status) bool {
		return all["here"].Detection == 150*ms && all["there"].Detection == 150*ms
	})
	before := d.State()
	for range 5 {
		d.starve(400 * ms)
		time.Sleep(60 * ms)
	}
	d.await("it is told", func(all map[string]Status) bool { return all["here"].Starved > 0 && all["there"].Starved > 0 })
	for name, st := range d.State() {
		if st.State != session.Up || st.Failures != 0 || !st.Since.Equal(before[name].Since) || st.StarvedAt.IsZero() {
			t.Errorf("%s: %+v", name, st)
		}
	}
	if d.counter("quayside_bfd_starved_total", "here") == 0 {
		t.Error("it is not counted")
	}
}

// A packet may make something due sooner than the Detector meant to come back. A
// process that is starved right then is starved since that was due.
func TestStarvationBeginsWithWhatIsDue(t *testing.T) {
	d, now := New(Options{}), time.Now()
	d.mu.Lock()
	d.armed = now.Add(time.Second)
	d.queue.Set(&new(peer).turn, now.Add(50*ms))
	d.unlock()
	d.mu.Lock()
	defer d.unlock()
	if late := now.Add(450 * ms).Sub(d.armed); late != 400*ms {
		t.Errorf("a turn at 450 ms for what is due at 50 ms counts as %v late", late)
	}
}

// TestPacketsAllocateNothing counts what is allocated by packets that are sent and
// heard while a second passes.
func TestPacketsAllocateNothing(t *testing.T) {
	d := start(t)
	here, there := talk(1, false)
	here.Transmit, here.Receive, there.Transmit, there.Receive = 10*ms, 10*ms, 10*ms, 10*ms
	here.Multiplier, there.Multiplier = 255, 255
	d.Set(&Want{map[string]Session{"here": here, "there": there}})
	d.awaitUp("here", "there")
	d.await("quick", func(all map[string]Status) bool {
		return all["here"].Transmit == 10*ms && all["there"].Transmit == 10*ms
	})
	p := d.peerOf(here)
	packet := session.Packet{State: session.Up, Multiplier: 255, MyDiscriminator: d.peerOf(there).id, YourDiscriminator: p.id, DesiredMinTx: 10 * ms, RequiredMinRx: 10 * ms, Poll: true}
	d.mu.Lock()
	defer d.unlock()
	if n := testing.AllocsPerRun(200, func() {
		for _, r := range d.receivers { // what waits there: answers, and packets of the other end
			r.now = time.Now()
			_ = r.raw.Control(r.drainFn)
		}
		now := time.Now()
		p.machine.Receive(&packet, now)
		d.serve(p, now) // answers
	}); n != 0 {
		t.Errorf("%v allocations per packet", n)
	}
	if p.sent < 200 || p.errors > 0 {
		t.Errorf("%d packets sent, %d errors: nothing was measured", p.sent, p.errors)
	}
}

func (r *running) peerOf(s Session) *peer {
	r.mu.Lock()
	defer r.unlock()
	e, _, _ := s.read()
	return r.have[e]
}

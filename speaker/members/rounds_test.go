package members

import (
	"net"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"
)

// pinged counts pings, and takes from the queue what memberlist would add to them.
type pinged struct {
	queue *memberlist.TransmitLimitedQueue
	mu    sync.Mutex
	of    map[string]int
	told  int // messages
}

func (p *pinged) Ping(name string, _ net.Addr) (time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.of[name]++
	p.told += len(p.queue.GetBroadcasts(0, 1400))
	return 0, nil
}

func (p *pinged) SendBestEffort(*memberlist.Node, []byte) error { return nil }

func (p *pinged) messages() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.told
}

func (p *pinged) times(name string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.of[name]
}

func (p *pinged) all() (sum int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.of {
		sum += n
	}
	return sum
}

// Who has nothing to say is silent; what is new is told at once, and as often as it
// takes, and a suspicion to the suspect first.
func TestNewsIsSpread(t *testing.T) { synctest.Test(t, newsIsSpread) }

// newsIsSpread runs on time of its own, of which no round comes late.
func newsIsSpread(t *testing.T) {
	m := newFleet(t, 94, 5).make(0, "")
	for _, p := range m.want.Load().Peers {
		m.alive[p.Name] = struct{}{}
	}
	list := &pinged{queue: m.queue, of: map[string]int{}}
	done := make(chan struct{})
	go func() { defer close(done); m.spreadNews(t.Context(), list) }()
	t.Cleanup(func() { <-done })
	rest := m.timing.gossip * time.Duration(m.rounds()+5)
	if time.Sleep(rest); list.all() > 0 {
		t.Fatalf("there is no news, and %d pings were sent", list.all())
	}
	for name, tell := range map[string]func(){
		"a message": func() { m.broadcast([][]byte{[]byte("a message")}) },
		"a member":  func() { (&delegate{m}).NotifyJoin(&memberlist.Node{Name: "n5"}) },
		"a refutation": func() {
			_, _ = (&adapter{m: m}).Write([]byte("[WARN] memberlist: Refuting a suspect message (from: n2)\n"))
		},
	} {
		before := list.all()
		tell()
		time.Sleep(rest)
		if n := list.all() - before; n < m.copies() || n > m.copies()+2*fanout {
			t.Errorf("%s: %d pings, want a few more than %d", name, n, m.copies())
		}
	}
	if list.messages() != m.copies() || m.queue.NumQueued() > 0 {
		t.Errorf("one message was sent %d times, want %d", list.messages(), m.copies())
	}
	m.doubt(t.Context(), "n2")
	before := list.times("n2")
	m.broadcast([][]byte{[]byte("another")})
	if time.Sleep(rest); list.times("n2") > before {
		t.Error("n2 does not answer, and was told what is new")
	}
	before = list.times("n4")
	_, _ = (&adapter{m: m}).Write([]byte("[INFO] memberlist: Suspect n4 has failed, no acks received\n"))
	time.Sleep(rest)
	if n := list.times("n4") - before; n != m.rounds() {
		t.Errorf("n4 is suspected, and was pinged in %d of %d rounds", n, m.rounds())
	}
}

// What starts the rounds is what memberlist really logs when one of its probes has failed.
func TestMemberlistLogsSuspicions(t *testing.T) {
	f := newFleet(t, 95, 2)
	m, other := f.make(0, f.keyFile), f.mortal(1)
	keys, err := readKeys(f.keyFile)
	if err != nil {
		t.Fatal(err)
	}
	ring, err := memberlist.NewKeyring(keys, keys[0])
	if err != nil {
		t.Fatal(err)
	}
	list, _, err := m.create(ring, f.peers[0].Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = list.Shutdown() }()
	eventually(t, "they have met", func() bool {
		_, err := list.Join([]string{netip.AddrPortFrom(f.peers[1].Addr, uint16(f.port)).String()})
		return err == nil
	})
	if m.suspect.Load() != nil {
		t.Fatal("somebody is suspected already")
	}
	if err := other.Shutdown(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "n2 is suspected", func() bool { s := m.suspect.Load(); return s != nil && *s == "n2" })
	<-m.news // there is some
}

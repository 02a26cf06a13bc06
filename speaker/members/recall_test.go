package members

import (
	"fmt"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"

	"quayside.io/speaker/announce"
)

// vlans are interfaces that together do not fit a packet of gossip.
func vlans(up bool) (out []announce.Interface) {
	for i := range 12 {
		out = append(out, announce.Interface{Name: fmt.Sprintf("bond0.%d", 100+i), MAC: "02:00:00:00:00:01", Up: up,
			Prefixes: []netip.Prefix{netip.MustParsePrefix(fmt.Sprintf("10.0.%d.1/24", i)), netip.MustParsePrefix(fmt.Sprintf("2001:db8:0:%d::1/64", i))}})
	}
	return out
}

// A node with many interfaces is heard as soon as one with few.
func TestManyInterfacesAreToldAtOnce(t *testing.T) {
	f := newFleet(t, 31, 2)
	a, _ := f.start(0, f.keyFile)
	b, _ := f.start(1, f.keyFile)
	eventually(t, "they meet", func() bool { return len(a.View().Alive) == 2 && len(b.View().Alive) == 2 })
	for _, up := range []bool{true, false} {
		w := f.want(0)
		w.Facts.Interfaces = vlans(up)
		a.Set(w)
		began := time.Now()
		eventually(t, "n2 hears of it", func() bool {
			told := b.View().Facts["n1"].Interfaces
			return len(told) == len(vlans(up)) && told[0].Up == up
		})
		if took := time.Since(began); took > 15*time.Second { // an exchange of state comes each 30 s
			t.Errorf("n2 heard of it after %v", took)
		}
	}
}

// A node reboots with its clock behind: what others remember of its end is
// newer than what it says now, and they believe it all the same.
func TestAClockThatWentBack(t *testing.T) {
	f := newFleet(t, 33, 2)
	b, _ := f.start(1, f.keyFile)
	b.state.merge(message{kind: kindLeaving, node: "n1", version: uint64(time.Now().Add(time.Hour).UnixMicro()), leaving: bitLeaving}, true)
	a, _ := f.start(0, f.keyFile)
	eventually(t, "they meet", func() bool { return len(a.View().Alive) == 2 && len(b.View().Alive) == 2 })
	eventually(t, "n2 hears that n1 stays", func() bool { return !b.View().Facts["n1"].Leaving })
}

// A member is called dead and refutes it, as after a pause, or answers again after it was
// doubted: what was said to the living in between, it hears soon, and not at the next
// exchange of state.
func TestWhoReturnsHearsWhatItMissed(t *testing.T) {
	for octet, leaves := range map[int]func(m *Members, missed *memberlist.Node) (returns func()){
		34: func(m *Members, missed *memberlist.Node) func() {
			d := &delegate{m}
			d.NotifyLeave(missed)
			return func() { d.NotifyJoin(missed) }
		},
		35: func(m *Members, missed *memberlist.Node) func() {
			m.doubt(t.Context(), missed.Name)
			return func() { m.answered(missed.Name) }
		},
	} {
		hearsWhatItMissed(t, octet, leaves)
	}
}

func hearsWhatItMissed(t *testing.T, octet int, leaves func(*Members, *memberlist.Node) func()) {
	f := newFleet(t, octet, 2)
	a, _ := f.start(0, f.keyFile)
	b, _ := f.start(1, f.keyFile)
	eventually(t, "they meet", func() bool {
		return a.View().Settled && b.View().Settled && len(a.View().Alive) == 2 && len(b.View().Alive) == 2
	})
	returns := leaves(a, &memberlist.Node{Name: "n2", Addr: f.peers[1].Addr.AsSlice(), Port: uint16(f.port)})
	const many = 1000 // claims fit no packet
	claims := map[netip.Addr]int64{}
	for i := range many {
		claims[netip.AddrFrom4([4]byte{10, 0, byte(i / 250), byte(i % 250)})] = 4
	}
	a.state.claim(claims) // and b was not told
	now := uint64(time.Now().UnixMicro())
	a.state.tell(announce.Facts{Drained: true}, now) // nor of this
	returns()
	eventually(t, "n2 hears of the claims", func() bool { return len(b.View().Claims) == many })
	// n1 itself knows nothing of a word by that version, and overrules it once it comes back.
	eventually(t, "and of the node", func() bool { return saidBy(b.state, "n1") >= now })
}

// saidBy is the version of what a state knows a node to have said of itself.
func saidBy(s *state, node string) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nodes[node].leavingVersion
}

// Whoever sends packets with invented senders does not fill our memory.
func TestStrangersAreForgotten(t *testing.T) {
	m, err := New(Options{NodeName: "n1", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	a := &adapter{m: m, last: map[string]time.Time{}}
	for i := range 10 * maxUnknown {
		if _, err := fmt.Fprintf(a, "[ERR] memberlist: Decrypt packet failed: no key from=10.0.%d.%d:9\n", i>>8, i&255); err != nil {
			t.Fatal(err)
		}
	}
	if len(a.last) > maxUnknown {
		t.Errorf("%d hosts are remembered", len(a.last))
	}
}

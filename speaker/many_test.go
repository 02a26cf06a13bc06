package speaker

import (
	"bytes"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/mdlayher/packet"
	"golang.org/x/sys/unix"

	"quayside.io/speaker/l2"
	"quayside.io/test/busy"
)

// manyServices is how many addresses TestManyAddresses adds.
const manyServices = 1000

// manyAddress is the address of the i-th of them: half are of either family.
func manyAddress(i int) string {
	if i%2 == 1 {
		return fmt.Sprintf("2001:db8:0:1::1:%x", i)
	}
	return fmt.Sprintf("10.0.%d.%d", 8+i/200, 1+i%200)
}

// announceWithin is how long after its death is noticed the addresses of a node
// may take to be announced by others: all thousand, the questions to the LAN
// included. That is a quarter of a second on an idle machine. Where others want the
// processors it takes longer by as much as this test waited itself.
const announceWithin = 500 * time.Millisecond

// TestManyAddresses lets a thousand addresses change hands at once.
func TestManyAddresses(t *testing.T) {
	if racing {
		t.Skip("the race detector sees the same in the fleets of fewer addresses, and says nothing about time; `make unit` runs it without, too")
	}
	if !inside(t) {
		return
	}
	f := newFleet(t, 3)
	f.many = true
	f.start(1)
	took := f.eventually("n1 answers for all", func() bool { return len(f.whoAll()["n1"]) == manyServices })
	t.Logf("n1 alone answers for %d addresses %v after its start", manyServices, took.Round(time.Millisecond))
	f.start(2)
	f.start(3)
	f.eventually("they have met", func() bool { return f.logged(`msg="members have met"`) == 3 })
	time.Sleep(2 * time.Second)
	if n := len(f.whoAll()["n1"]); n != manyServices {
		t.Errorf("n2 and n3 came, and n1 has %d addresses left", n)
	}

	heard := f.overhear(f.hosts["n1"].mac)
	standstill := busy.Standstill(t)
	died := time.Now()
	f.hosts["n1"].cable("nomaster")
	var owners map[string][]netip.Addr
	took = f.eventually("the survivors answer for all", func() bool {
		owners = f.whoAll()
		return len(owners[""])+len(owners["n1"]) == 0
	})
	t.Logf("n2 answers for %d, n3 for %d, all within %v of the death of n1", len(owners["n2"]), len(owners["n3"]), took.Round(time.Millisecond))
	late := standstill()
	time.Sleep(2 * time.Second) // late announcements are to be heard as well
	f.promptlyAnnounced(t, died, heard(), late)
	for _, name := range []string{"n2", "n3"} {
		if n := len(owners[name]); n > manyServices*5/8+10 {
			t.Errorf("%s owns %d of %d", name, n, manyServices)
		}
	}
	f.hosts["n1"].cable("master lan")
	time.Sleep(2 * time.Second)
	if n := len(f.whoAll()["n1"]); n > 0 {
		t.Errorf("n1 returned and took %d addresses", n)
	}
	// The last one standing has no speaker to talk to, but hears that hosts ask.
	f.hosts["n1"].cable("nomaster")
	f.hosts["n2"].cable("nomaster")
	took = f.eventually("the last one answers for all", func() bool { return len(f.whoAll()["n3"]) == manyServices })
	t.Logf("n3 alone answers for all after %v", took.Round(time.Millisecond))
}

// promptlyAnnounced judges the takeover of all addresses of n1, which died:
// from the moment when the first survivor knew it, to the last announcement, on a machine
// that stood still for a while meanwhile.
func (f *fleet) promptlyAnnounced(t *testing.T, died time.Time, heard map[netip.Addr]time.Time, late time.Duration) {
	t.Helper()
	var detected time.Time
	for _, line := range strings.Split(f.text(), "\n") {
		stamp, _, _ := strings.Cut(strings.TrimPrefix(line, "time="), " ")
		if !strings.Contains(line, `msg="member is gone"`) || !strings.Contains(line, " node=n1 ") || strings.Contains(line, " me=n1 ") {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, stamp)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if at.After(died) && (detected.IsZero() || at.Before(detected)) {
			detected = at
		}
	}
	if detected.IsZero() {
		t.Fatal("nobody says that n1 is gone")
	}
	var first, last time.Time
	for i := range manyServices {
		at, ok := heard[netip.MustParseAddr(manyAddress(i))]
		if !ok {
			t.Fatalf("%s was taken over and never announced", manyAddress(i))
		}
		if first.IsZero() || at.Before(first) {
			first = at
		}
		if at.After(last) {
			last = at
		}
	}
	t.Logf("n1 died; known after %v; the first of its %d addresses was announced %v later, the last %v", detected.Sub(died).Round(time.Millisecond),
		manyServices, first.Sub(detected).Round(time.Millisecond), last.Sub(detected).Round(time.Millisecond))
	if took := last.Sub(detected); took > announceWithin+late {
		t.Errorf("the takeover of %d addresses took %v, more than %v and the %v that the machine stood still", manyServices, took, announceWithin, late)
	}
}

// text is what all nodes have logged.
func (f *fleet) text() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log.String()
}

// overhear listens on the LAN until the returned function is called: when each
// address was first announced unasked by anybody else than this MAC.
func (f *fleet) overhear(but string) (end func() map[netip.Addr]time.Time) {
	f.t.Helper()
	four, six := f.listen(unix.ETH_P_ARP, but, gratuitousARP), f.listen(unix.ETH_P_IPV6, but, unsolicitedNA)
	return func() map[netip.Addr]time.Time {
		f.t.Helper()
		heard := four()
		maps.Copy(heard, six())
		return heard
	}
}

// gratuitousARP is the address that a frame announces.
func gratuitousARP(frame []byte) (a netip.Addr, ok bool) {
	// Who speaks stands at 28, about whom at 38.
	if len(frame) < 42 || !bytes.Equal(frame[28:32], frame[38:42]) {
		return a, false
	}
	return netip.AddrFrom4([4]byte(frame[28:32])), true
}

// unsolicitedNA is the address that a frame announces.
func unsolicitedNA(frame []byte) (a netip.Addr, ok bool) {
	// ICMPv6 at 20, its type at 54, the flags at 58 (0x40: somebody asked), the
	// target at 62.
	if len(frame) < 78 || frame[20] != 58 || frame[54] != 136 || frame[58]&0x40 != 0 {
		return a, false
	}
	return netip.AddrFrom16([16]byte(frame[62:78])), true
}

// listen notes when an address was first found in a frame of others.
func (f *fleet) listen(proto int, but string, find func([]byte) (netip.Addr, bool)) (end func() map[netip.Addr]time.Time) {
	f.t.Helper()
	lan, err := net.InterfaceByName("lan")
	if err != nil {
		f.t.Fatal(err)
	}
	conn, err := packet.Listen(lan, packet.Raw, proto, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		f.t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 8<<20) // a frame that is lost fails the test
	}); err != nil {
		f.t.Fatal(err)
	}
	heard := make(chan map[netip.Addr]time.Time, 1)
	go func() {
		seen := map[netip.Addr]time.Time{}
		frame := make([]byte, 1500)
		for {
			n, _, err := conn.ReadFrom(frame)
			if err != nil {
				heard <- seen // closed
				return
			}
			if a, ok := find(frame[:n]); ok && seen[a].IsZero() && net.HardwareAddr(frame[6:12]).String() != but {
				seen[a] = time.Now()
			}
		}
	}()
	return func() map[netip.Addr]time.Time {
		f.t.Helper()
		if err := conn.Close(); err != nil {
			f.t.Fatal(err)
		}
		return <-heard
	}
}

// whoAll asks for all addresses at once: who answers for which.
func (f *fleet) whoAll() map[string][]netip.Addr {
	f.t.Helper()
	questions := make([]l2.Question, manyServices)
	for i := range questions {
		questions[i] = l2.Question{Address: netip.MustParseAddr(manyAddress(i)), Interfaces: []string{"lan"}}
	}
	found, err := f.ask.Probe(f.t.Context(), questions, l2.Timing{Times: 2, Every: 60 * time.Millisecond})
	if err != nil { // as long as no node has joined the LAN
		f.t.Logf("%s: nobody could be asked: %v", time.Now().UTC().Format("15:04:05.000"), err)
	}
	names := map[string]string{}
	for _, h := range f.hosts {
		names[h.mac] = h.name
	}
	out := map[string][]netip.Addr{}
	for _, q := range questions {
		name := names[found[q.Address].MAC]
		out[name] = append(out[name], q.Address)
	}
	return out
}

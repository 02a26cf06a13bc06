package bfd

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"quayside.io/speaker/bfd/session"
	"quayside.io/test/netns"
)

// gun is a socket in the neighbor's network.
func (n *neighbor) gun(from string, ttl int, port int) (conn net.Conn) {
	n.t.Helper()
	network := func(pid string) int {
		fd, err := unix.Open("/proc/"+pid+"/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			n.t.Fatal(err)
		}
		return fd
	}
	here, there := network("self"), network(n.pid)
	defer unix.Close(here)
	defer unix.Close(there)
	// The thread must come back: with it would end the processes that it started.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Setns(there, unix.CLONE_NEWNET); err != nil {
		n.t.Fatal(err)
	}
	dialer := net.Dialer{LocalAddr: &net.UDPAddr{IP: net.ParseIP(from)}, Control: func(_, _ string, c syscall.RawConn) error {
		return control(c, false, "", func(bool) []option { return []option{{unix.IPPROTO_IP, unix.IP_TTL, ttl}} })
	}}
	conn, err := dialer.DialContext(context.Background(), "udp4", net.JoinHostPort("10.0.0.1", strconv.Itoa(port)))
	if err := errors.Join(err, unix.Setns(here, unix.CLONE_NEWNET)); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// TestHostileNeighbors floods sessions with what may not end them, from where
// their own packets come, too.
func TestHostileNeighbors(t *testing.T) {
	if !inNamespace(t, "vtysh", frrDaemons+"/bfdd") {
		return
	}
	n := connect(t)
	n.sh("ip addr add 10.0.0.77/24 dev eth0")
	n.startFRR("peer 10.0.0.1 interface eth0", "peer 10.0.0.1 multihop local-address 10.0.0.9")
	d := start(t)
	lines := n.lines()
	one, far := lines["ipv4"], lines["ipv4 multihop"]
	d.Set(&Want{map[string]Session{"one": one, "far": far}})
	d.await("up", func(all map[string]Status) bool {
		return all["one"].Detection == 150*ms && all["far"].Detection == 150*ms && all["one"].State == session.Up && all["far"].State == session.Up
	})
	before := d.State()

	down := func(your uint32) []byte {
		p := session.Packet{State: session.Down, Multiplier: 3, MyDiscriminator: 0xbad, YourDiscriminator: your, DesiredMinTx: time.Second, RequiredMinRx: time.Second, Poll: true}
		return p.Append(nil)
	}
	oneID, farID := d.peerOf(one).id, d.peerOf(far).id
	noise := func(version byte) []byte {
		b := make([]byte, 24+rand.IntN(100))
		for i := range b {
			b[i] = byte(rand.Uint32())
		}
		b[0] = version<<5 | b[0]&0x1f
		return b
	}
	shots := []struct {
		gun  net.Conn
		what func() []byte
	}{
		{n.gun("10.0.0.9", 254, portSingleHop), func() []byte { return down(oneID) }},     // from two hops away, knowing all
		{n.gun("10.0.0.9", 64, portMultihop), func() []byte { return down(farID) }},       // from too far away, knowing all
		{n.gun("10.0.0.77", 255, portSingleHop), func() []byte { return down(oneID) }},    // another neighbor, knowing all
		{n.gun("10.0.0.9", 255, portMultihop), func() []byte { return down(oneID) }},      // to the wrong port
		{n.gun("10.0.0.9", 255, portSingleHop), func() []byte { return down(0) }},         // as if it had started again
		{n.gun("10.0.0.9", 255, portMultihop), func() []byte { return down(0) }},          //
		{n.gun("10.0.0.9", 255, portSingleHop), func() []byte { return down(oneID ^ 1) }}, // a guess
		{n.gun("10.0.0.9", 255, portSingleHop), func() []byte { return noise(0) }},        //
		{n.gun("10.0.0.9", 255, portSingleHop), func() []byte { return noise(1) }},        // unguessable discriminators
		{n.gun("10.0.0.9", 255, portMultihop), func() []byte { return noise(1)[:rand.IntN(24)] }},
	}
	fired := 0
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(ms) {
		for range 5 {
			for _, s := range shots {
				if _, err := s.gun.Write(s.what()); err == nil {
					fired++
				}
			}
		}
	}
	for name, st := range d.State() {
		if !st.Since.Equal(before[name].Since) || st.Failures > 0 || st.State != session.Up {
			t.Errorf("%s is %+v", name, st)
		}
	}
	t.Logf("%d packets were fired", fired)
	for _, reason := range []string{dropKernel, dropSource, dropUnknown, dropAnonymous} {
		n := d.counter("quayside_bfd_dropped_packets_total", reason)
		if t.Logf("%s: %v", reason, n); n == 0 {
			t.Errorf("no packet was dropped as %s", reason)
		}
	}
}

// TestSeveralHops holds a session through a router, with a TTL that suffices and
// with one that does not.
func TestSeveralHops(t *testing.T) {
	if !inNamespace(t, "vtysh", frrDaemons+"/bfdd") {
		return
	}
	middle, far := connect(t), newMachine(t)
	middle.sh("ip link add eth1 type veth peer name eth0 netns " + far.pid + "; ip addr add 10.2.0.1/24 dev eth1; ip link set eth1 up; echo 1 >/proc/sys/net/ipv4/ip_forward")
	far.sh("ip link set lo up; ip addr add 10.2.0.9/24 dev eth0; ip link set eth0 up; ip route add default via 10.2.0.1")
	netns.Sh(t, "ip route add 10.2.0.0/24 via 10.0.0.9")
	far.startFRR("peer 10.0.0.1 multihop local-address 10.2.0.9")
	d := start(t)
	want := func(ttl uint8) {
		d.Set(&Want{map[string]Session{"far": {
			Peer: netip.MustParseAddr("10.2.0.9"), Local: netip.MustParseAddr("10.0.0.1"), Multihop: true, MinimumTTL: ttl, Transmit: 50 * ms, Receive: 50 * ms,
		}}})
	}
	want(0) // 254: one router between
	d.awaitUp("far")
	want(255)
	d.await("nothing is near enough", func(all map[string]Status) bool { return all["far"].State == session.Down })
	if st := d.State()["far"]; st.Diag != session.DiagExpired.String() {
		t.Errorf("%+v", st)
	}
	want(254)
	d.awaitUp("far")
}

// TestStarvedBesideFRR keeps us from running for much longer than the detection
// time, and for less than FRR is patient with us.
func TestStarvedBesideFRR(t *testing.T) {
	if !inNamespace(t, "vtysh", frrDaemons+"/bfdd") {
		return
	}
	n := connect(t)
	n.startFRR("peer 10.0.0.1 interface eth0")
	d := start(t)
	s := n.lines()["ipv4"]
	s.Multiplier = 60
	d.Set(&Want{map[string]Session{"it": s}})
	d.await("up", func(all map[string]Status) bool {
		return all["it"].State == session.Up && all["it"].Detection == 150*ms && all["it"].Transmit == 50*ms
	})
	before := d.State()["it"]
	time.Sleep(200 * ms) // it has heard how patient it should be
	for range 3 {
		d.starve(time.Second)
		time.Sleep(200 * ms)
	}
	d.await("it is told", func(all map[string]Status) bool { return all["it"].Starved >= 3 })
	if st := d.State()["it"]; !st.Since.Equal(before.Since) || st.Failures > 0 {
		t.Errorf("it is %+v", st)
	}
}

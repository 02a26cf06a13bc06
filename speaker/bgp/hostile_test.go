package bgp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// raw builds a message by hand: peers here send what no codec would.
func raw(kind byte, body ...byte) []byte {
	b := bytes.Repeat([]byte{0xff}, 16)
	b = binary.BigEndian.AppendUint16(b, uint16(headerLength+len(body)))
	return append(append(b, kind), body...)
}

const (
	kindOpen, kindUpdate, kindNotification, kindKeepalive = 1, 2, 3, 4
)

// rawOpen is a peer's OPEN: AS 65001, with capabilities for IPv4 and long AS numbers.
func rawOpen(hold uint16) []byte {
	return raw(kindOpen, append([]byte{4, 0xfd, 0xe9, byte(hold >> 8), byte(hold), 10, 0, 0, 7,
		14, 2, 6, 1, 4, 0, 1, 0, 1}, 2, 4, 70, 2, 0, 0)...)
}

// buffer is what a rude peer's kernel takes before it must read.
const buffer = 64 << 10

// rude is a peer of ours that is played by the test.
type rude struct {
	t *testing.T
	net.Listener
	s *speaker
}

func newRude(t *testing.T, change func(*Settings, *Options)) *rude {
	t.Helper()
	t.Cleanup(func() { goleak.VerifyNone(t) })
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		return control(raw, func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, buffer) })
	}}
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	set := settings(1)
	set.Peer = netip.MustParseAddrPort(l.Addr().String())
	opts := Options{OpenTime: 500 * time.Millisecond}
	change(&set, &opts)
	r := &rude{t, l, start(t, opts)}
	r.s.Set(one("r", set, routesOf(&Attributes{}, "192.0.2.1/32")))
	return r
}

func (r *rude) accept() net.Conn {
	r.t.Helper()
	c, err := r.Accept()
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	return c
}

// greet completes the exchange up to Established.
func (r *rude) greet(c net.Conn, hold uint16) {
	r.t.Helper()
	if _, err := c.Write(append(rawOpen(hold), raw(kindKeepalive)...)); err != nil {
		r.t.Fatal(err)
	}
	r.s.awaitUp("r")
}

// last reads until the end and returns the code and subcode of the NOTIFICATION
// that came before it.
func last(c net.Conn) (code, sub byte, err error) {
	f := newFramer(c)
	_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
	for {
		m, err := f.next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return code, sub, err
		}
		if m.kind == kindNotification {
			code, sub = m.body[0], m.body[1]
		}
	}
}

// TestBadMessagesEarnTheirNotification sends each right after our OPEN, or in
// an established session.
func TestBadMessagesEarnTheirNotification(t *testing.T) {
	desynchronized := raw(kindKeepalive)
	desynchronized[3] = 0
	sized := func(kind byte, length uint16) []byte {
		b := raw(kind)
		binary.BigEndian.PutUint16(b[16:], length)
		return b
	}
	for _, c := range []struct {
		name        string
		send        []byte
		established bool
		code, sub   byte
	}{
		{"marker", desynchronized, false, 1, 1},
		{"marker later", desynchronized, true, 1, 1},
		{"too short", sized(kindKeepalive, 18), false, 1, 2},
		{"too long", sized(kindUpdate, 4097), true, 1, 2},
		{"65535 bytes", sized(kindUpdate, 65535), true, 1, 2},
		{"a KEEPALIVE with a body", raw(kindKeepalive, 1), true, 1, 2},
		{"a short OPEN", raw(kindOpen, 4, 0xfd), false, 1, 2},
		{"type 0", raw(0), false, 1, 3},
		{"type 255", raw(255), true, 1, 3},
		{"version 3", raw(kindOpen, 3, 0xfd, 0xe9, 0, 90, 10, 0, 0, 7, 0), false, 2, 1},
		{"AS 0", raw(kindOpen, 4, 0, 0, 0, 90, 10, 0, 0, 7, 0), false, 2, 2},
		{"identifier 0", raw(kindOpen, 4, 0xfd, 0xe9, 0, 90, 0, 0, 0, 0, 0), false, 2, 3},
		{"hold time 2", raw(kindOpen, 4, 0xfd, 0xe9, 0, 2, 10, 0, 0, 7, 0), false, 2, 6},
		{"parameters past the end", raw(kindOpen, 4, 0xfd, 0xe9, 0, 90, 10, 0, 0, 7, 200), false, 2, 0},
		{"a capability past the end", raw(kindOpen, 4, 0xfd, 0xe9, 0, 90, 10, 0, 0, 7, 4, 2, 2, 65, 200), false, 2, 0},
		{"a long AS number of no bytes", raw(kindOpen, 4, 0xfd, 0xe9, 0, 90, 10, 0, 0, 7, 10, 2, 8, 65, 0, 1, 4, 0, 1, 0, 1), false, 2, 0}, // GHSA-gjrg-jjr3-56cm
		{"an UPDATE before OPEN", raw(kindUpdate, 0, 0, 0, 0), false, 5, 1},
		{"a second OPEN", rawOpen(90), true, 5, 3},
		{"withdrawn routes past the end", raw(kindUpdate, 0xff, 0xff, 0, 0), true, 3, 1},
		{"attributes past the end", raw(kindUpdate, 0, 0, 0xff, 0xff), true, 3, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRude(t, func(*Settings, *Options) {})
			conn := r.accept()
			if c.established {
				r.greet(conn, 90)
			}
			if _, err := conn.Write(c.send); err != nil {
				t.Fatal(err)
			}
			code, sub, err := last(conn)
			if err != nil || code != c.code || sub != c.sub {
				t.Errorf("NOTIFICATION %d/%d (%v), not %d/%d", code, sub, err, c.code, c.sub)
			}
			why := "refused"
			if c.code == 5 {
				why = "in state"
			}
			r.s.awaitError("r", why)
		})
	}
}

// TestStalls: in no state can a silent peer hold a session.
func TestStalls(t *testing.T) {
	for _, c := range []struct {
		name string
		send []byte
		code byte
		why  string
	}{
		{"before OPEN", nil, 4, "not done with OpenSent"},
		{"after OPEN", rawOpen(90), 4, "hold timer expired"},
		{"after OPEN, without a hold time", rawOpen(0), 4, "not done with OpenConfirm"},
		{"when established", append(rawOpen(3), raw(kindKeepalive)...), 4, "hold timer expired: nothing heard for 3s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRude(t, func(s *Settings, o *Options) { s.Hold = 3 * time.Second })
			conn := r.accept()
			if _, err := conn.Write(c.send); err != nil {
				t.Fatal(err)
			}
			if code, _, err := last(conn); err != nil || code != c.code {
				t.Errorf("NOTIFICATION %d, %v", code, err)
			}
			r.s.awaitError("r", c.why)
		})
	}
}

// TestAnOPENAByteAtATime ends with the open timer, however the bytes trickle.
func TestAnOPENAByteAtATime(t *testing.T) {
	r := newRude(t, func(*Settings, *Options) {})
	conn := r.accept()
	go func() {
		for _, b := range bytes.Repeat(rawOpen(90)[:1], 16) {
			if _, err := conn.Write([]byte{b}); err != nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
	if code, _, err := last(conn); code != 4 {
		t.Errorf("NOTIFICATION %d, %v", code, err)
	}
	slow := r.accept()
	for _, b := range append(rawOpen(90), raw(kindKeepalive)...) { // quick enough
		if _, err := slow.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	r.s.awaitUp("r")
}

// TestAPeerThatDoesNotReadIsLeftQuickly: its session ends after the hold time, though it goes
// on speaking, and another session is not delayed.
func TestAPeerThatDoesNotReadIsLeftQuickly(t *testing.T) {
	if racing {
		t.Skip("with the race detector 24 MB of messages are not made faster than kernels take them; `make unit` runs it without, too")
	}
	r := newRude(t, func(s *Settings, _ *Options) { s.Hold = 3 * time.Second })
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	conn := r.accept()
	r.greet(conn, 3)
	ends := make(chan struct{})
	go func() {
		defer close(ends)
		for {
			if _, err := conn.Write(raw(kindKeepalive)); err != nil {
				return
			}
			time.Sleep(200 * time.Millisecond)
		}
	}()
	many := voluminous(8_000)
	set := settings(1)
	set.Hold = 3 * time.Second
	set.Peer = netip.MustParseAddrPort(r.Addr().String())
	second := settings(1)
	second.Peer = netip.MustParseAddrPort(other.Addr().String())
	w := one("r", set, many)
	w.Sessions = append(w.Sessions, Session{Name: "other", Settings: second})
	r.s.Set(w)
	begin := time.Now()
	c, err := other.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write(append(rawOpen(90), raw(kindKeepalive)...)); err != nil {
		t.Fatal(err)
	}
	r.s.awaitUp("other")
	if d := time.Since(begin); d > 3*time.Second { // as long as r is stuck
		t.Errorf("the other session came up after %v", d)
	}
	r.s.awaitError("r", "timeout")
	_ = conn.Close()
	<-ends
}

// voluminous routes fill a message of 3 kB each.
func voluminous(n int) (many []Route) {
	for i := range n {
		a := &Attributes{LargeCommunities: slices.Repeat([]LargeCommunity{{uint32(i), 1, 2}}, 250)}
		many = append(many, Route{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0}), 32), a})
	}
	return many
}

// TestAPeerThatReadsSlowlyIsLeftQuickly: each message is taken in time, but not all of
// them. The session ends after the hold time, not when the peer is done.
func TestAPeerThatReadsSlowlyIsLeftQuickly(t *testing.T) {
	if racing {
		t.Skip("the race detector makes 12 MB of messages too slowly; `make unit` runs it without, too")
	}
	r := newRude(t, func(s *Settings, _ *Options) { s.Hold = 3 * time.Second })
	conn := r.accept()
	r.greet(conn, 3)
	ends := make(chan struct{})
	go func() {
		defer close(ends)
		sip := make([]byte, 8<<10)
		for {
			_, err := conn.Write(raw(kindKeepalive))
			if _, errRead := conn.Read(sip); err != nil || errRead != nil {
				return
			}
			time.Sleep(50 * time.Millisecond) // what no buffer holds takes most of a minute
		}
	}()
	set := settings(1)
	set.Hold = 3 * time.Second
	set.Peer = netip.MustParseAddrPort(r.Addr().String())
	r.s.Set(one("r", set, voluminous(4_000)))
	r.s.awaitError("r", "too slowly")
	_ = conn.Close()
	<-ends
}

// TestFlood: a million routes cost no memory.
func TestFlood(t *testing.T) {
	r := newRude(t, func(*Settings, *Options) {})
	conn := r.accept()
	r.greet(conn, 90)
	go func() { _, _ = io.Copy(io.Discard, conn) }()
	// 800 prefixes in an UPDATE, as a table dump has them.
	attributes := []byte{0x40, 1, 1, 0, 0x40, 2, 6, 2, 1, 0, 0, 0xfd, 0xe9, 0x40, 3, 4, 127, 0, 0, 1}
	body := append([]byte{0, 0, 0, byte(len(attributes))}, attributes...)
	for i := range 800 {
		body = append(body, 24, 1, byte(i>>8), byte(i))
	}
	update := raw(kindUpdate, body...)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for range 1250 {
		if _, err := conn.Write(update); err != nil {
			t.Fatal(err)
		}
	}
	session := (*r.s.sessions.Load())["r"]
	within(t, 20*time.Second, "all are taken", func() error {
		if n := session.counts.received.Load(); n != 1250 {
			return errors.New("not yet")
		}
		return nil
	})
	if grown := int64(heap()) - int64(before); grown > 1<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	if state := r.s.awaitUp("r"); state.Announced != 1 {
		t.Errorf("%+v", state)
	}
}

// TestUpdatesThatKilledGobgp: we do not look into them, and nothing happens.
func TestUpdatesThatKilledGobgp(t *testing.T) {
	r := newRude(t, func(*Settings, *Options) {})
	conn := r.accept()
	r.greet(conn, 90)
	updates := deadlyUpdates()
	if _, err := conn.Write(bytes.Join(updates, nil)); err != nil {
		t.Fatal(err)
	}
	session := (*r.s.sessions.Load())["r"]
	within(t, 5*time.Second, "they were taken", func() error {
		if n := session.counts.received.Load(); n != uint64(len(updates)) {
			return fmt.Errorf("%d of %d", n, len(updates))
		}
		return nil
	})
	r.s.awaitUp("r")
}

// deadlyUpdates are those of advisories: each made some gobgp dereference nil, or
// read past an end.
func deadlyUpdates() (list [][]byte) {
	origin, path, hop := []byte{0x40, 1, 1, 0}, []byte{0x40, 2, 6, 2, 1, 0, 0, 0xfd, 0xe9}, []byte{0x40, 3, 4, 127, 0, 0, 1}
	for _, attributes := range [][][]byte{
		{{0xc0, 17, 6, 2, 1, 0, 1, 0, 1}, origin, {0x40, 2, 4, 2, 1, 0x5b, 0xa0}, hop}, // AS4_PATH before AS_PATH: CVE-2026-41643
		{{0x40, 99, 1, 0}, origin, path, hop},                                          // well-known and unknown: CVE-2026-41642
		{{0, 1, 1, 0}, path, hop},                                                      // ORIGIN that is not transitive: CVE-2026-42285
		{{0x40, 1, 2, 0, 0}, path, hop},                                                // ORIGIN of another length, the same
		{origin, path, {0x40, 3, 0}},                                                   // NEXT_HOP without one: CVE-2026-30405
		{origin, {0x40, 2, 0}, hop},                                                    // AS_PATH of nothing: GHSA-frrj-87jh-2772
	} {
		body := bytes.Join(attributes, nil)
		list = append(list, raw(kindUpdate, append(append([]byte{0, 0, 0, byte(len(body))}, body...), 24, 1, 2, 3)...))
	}
	return list
}

// TestResets: a peer that resets each session is dialled ever more slowly.
func TestResets(t *testing.T) {
	r := newRude(t, func(s *Settings, o *Options) {
		s.Connect = 400 * time.Millisecond
		o.Random = func() float64 { return 0.999 }
	})
	var came []time.Time
	for range 5 {
		conn := r.accept()
		came = append(came, time.Now())
		r.greet(conn, 90)
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
		r.s.awaitError("r", "closed the connection")
	}
	for i, least := range []time.Duration{90, 180, 360, 360} {
		if d := came[i+1].Sub(came[i]); d < least*time.Millisecond {
			t.Errorf("attempt %d came after %v", i+2, d)
		}
	}
}

// TestNotificationsTellTheirReason shows the peer's words.
func TestNotificationsTellTheirReason(t *testing.T) {
	r := newRude(t, func(*Settings, *Options) {})
	conn := r.accept()
	r.greet(conn, 90)
	if _, err := conn.Write(raw(kindNotification, append([]byte{6, 2, 9}, "back at 5"...)...)); err != nil {
		t.Fatal(err)
	}
	r.s.awaitError("r", `the peer sent a NOTIFICATION: Cease, Administrative Shutdown: "back at 5"`)
}

func TestSessionsThatCannotBe(t *testing.T) {
	for want, change := range map[string]func(*Settings){
		"needs an address":     func(s *Settings) { s.Peer = netip.AddrPort{} },
		"needs an interface":   func(s *Settings) { s.Peer = netip.MustParseAddrPort("[fe80::1]:179") },
		"our AS number is 0":   func(s *Settings) { s.ASN = 0 },
		"peer's AS number":     func(s *Settings) { s.PeerASN = 0 },
		"router ID":            func(s *Settings) { s.RouterID = netip.Addr{} },
		"different families":   func(s *Settings) { s.Source = netip.MustParseAddr("::1") },
		"hold time 2s":         func(s *Settings) { s.Hold = 2 * time.Second },
		"longer than 80 bytes": func(s *Settings) { s.Password = strings.Repeat("x", 81) },
		"restart time":         func(s *Settings) { s.Restart = 2 * time.Hour },
		"no address family":    func(s *Settings) { s.IPv4, s.IPv6 = false, false },
		"nothing listens":      func(s *Settings) { s.Passive = true },
	} {
		s := start(t, Options{})
		set := settings(1)
		change(&set)
		s.Set(one("r", set, nil))
		s.awaitError("r", want)
		s.stop()
	}
}

// A router in a VRF that is to dial us is told of the switch without which the
// kernel refuses it.
func TestPassiveInAVRF(t *testing.T) {
	if listensInVRFs() {
		t.Skip("this kernel knows no VRF, or lets listeners take their connections: " + acceptInVRFs)
	}
	s := start(t, Options{Listen: "127.0.0.1:0"})
	set := settings(1)
	set.Passive, set.Device = true, "blue"
	s.Set(one("r", set, nil))
	s.awaitError("r", "do not reach this process: set net.ipv4.tcp_l3mdev_accept = 1")
}

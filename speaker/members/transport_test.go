package members

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func noBeat([]byte) bool { return false }

func testTransport(t *testing.T) (*transport, string) {
	t.Helper()
	tr, err := newTransport("127.0.0.1", 0, noBeat)
	for try := 0; err != nil && try < 10; try++ { // another process may have the UDP port of that number
		tr, err = newTransport("127.0.0.1", 0, noBeat)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tr.Shutdown() })
	return tr, tr.udp.LocalAddr().String()
}

// A packet may be kept while the next comes.
func TestTransportGivesEveryPacketItsOwnMemory(t *testing.T) {
	a, _ := testTransport(t)
	b, at := testTransport(t)
	for _, text := range []string{"first", "second"} {
		if _, err := a.WriteTo([]byte(text), at); err != nil {
			t.Fatal(err)
		}
	}
	first, second := <-b.PacketCh(), <-b.PacketCh()
	if !bytes.Equal(first.Buf, []byte("first")) || !bytes.Equal(second.Buf, []byte("second")) {
		t.Errorf("got %q and %q", first.Buf, second.Buf)
	}
	if cap(first.Buf) > 64 {
		t.Errorf("a packet of 5 bytes holds %d bytes of memory", cap(first.Buf))
	}
	if got, want := first.From.String(), a.udp.LocalAddr().String(); got != want {
		t.Errorf("from %s, want %s", got, want)
	}
}

func TestTransportSpendsLittleOnAPacket(t *testing.T) {
	a, _ := testTransport(t)
	b, at := testTransport(t)
	packet := make([]byte, 100)
	exchange := func() {
		if _, err := a.WriteTo(packet, at); err != nil {
			t.Fatal(err)
		}
		<-b.PacketCh()
	}
	result := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			exchange()
		}
	})
	if got := result.AllocedBytesPerOp(); got > 1024 {
		t.Errorf("%d bytes for a packet of 100", got)
	}
}

// Who does not take what comes does not keep a transport from ending.
func TestTransportEnds(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	a, at := testTransport(t)
	if _, err := a.WriteTo([]byte("nobody takes this"), at); err != nil {
		t.Fatal(err)
	}
	conn, err := net.DialTimeout("tcp", a.tcp.Addr().String(), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := a.Shutdown(); err != nil {
		t.Fatal(err)
	}
	if err := a.Shutdown(); err != nil {
		t.Fatal("again:", err)
	}
}

func TestTransportRefusesNames(t *testing.T) {
	a, _ := testTransport(t)
	if _, err := a.WriteTo([]byte("x"), "localhost:7946"); err == nil {
		t.Error("a name was looked up")
	}
	if _, _, err := a.FinalAdvertiseAddr("", 7946); err == nil {
		t.Error("no address is good enough to be told others")
	}
}

// Sockets of both families carry what is addressed to them, and say who sent it.
func TestTransportCarriesBothFamilies(t *testing.T) {
	for _, c := range []struct{ host, to, from string }{
		{"127.0.0.1", "127.0.0.1", "127.0.0.1"},
		{"::1", "::1", "::1"},
		{"0.0.0.0", "127.0.0.1", "127.0.0.1"}, // the default: a socket of IPv6 that takes both
		{"0.0.0.0", "::1", "::1"},
		{"::", "::ffff:127.0.0.1", "127.0.0.1"},
	} {
		tr, err := newTransport(c.host, 0, noBeat)
		for try := 0; err != nil && try < 10; try++ { // another process may have the UDP port of that number
			tr, err = newTransport(c.host, 0, noBeat)
		}
		if err != nil {
			t.Fatal(c.host, err)
		}
		defer tr.Shutdown()
		port := tr.udp.LocalAddr().(*net.UDPAddr).Port
		to := netip.AddrPortFrom(netip.MustParseAddr(c.to), uint16(port))
		if _, err := tr.WriteTo([]byte("hello"), to.String()); err != nil {
			t.Errorf("%s: %v", c.host, err)
			continue
		}
		p := <-tr.PacketCh()
		want := netip.AddrPortFrom(netip.MustParseAddr(c.from), uint16(port))
		if got := p.From.String(); got != want.String() || string(p.Buf) != "hello" {
			t.Errorf("%s: got %q from %s, want it from %s", c.host, p.Buf, got, want)
		}
	}
}

func TestTransportTellsWhatCannotBeSent(t *testing.T) {
	a, _ := testTransport(t)
	if _, err := a.WriteTo([]byte("x"), "[::1]:7946"); err == nil {
		t.Error("a socket of IPv4 sent a packet to IPv6")
	}
	if _, err := a.WriteTo(make([]byte, largestPacket), "127.0.0.1:7946"); !errors.Is(err, syscall.EMSGSIZE) {
		t.Errorf("a packet larger than UDP carries: %v", err)
	}
	if err := a.Shutdown(); err != nil {
		t.Fatal(err)
	}
	if _, err := a.WriteTo([]byte("x"), "127.0.0.1:7946"); err == nil {
		t.Error("a closed socket sent a packet")
	}
}

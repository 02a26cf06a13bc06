package l2

import (
	"bytes"
	"context"
	"encoding/binary"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/mdlayher/ndp"
)

// newPair is a cable with both ends in this namespace: lan0, and far, from where
// a test sends what it likes.
func newPair(t *testing.T) {
	t.Helper()
	run(t, "ip", "link", "add", "lan0", "type", "veth", "peer", "name", "far")
	run(t, "ip", "link", "set", "lan0", "up")
	run(t, "ip", "link", "set", "far", "up")
}

// open opens a socket on one end.
func open(t *testing.T, link string, spans []span, family int) *socket {
	t.Helper()
	ifi, err := net.InterfaceByName(link)
	if err != nil {
		t.Fatal(err)
	}
	filter := filter(arpFilter)
	if family == protoIPv6 {
		filter = ndpFilter
	}
	program, err := filter(ifi.Index, spans, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := openSocket(ifi, family, program)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

// Of all that is said on a LAN the kernel hands over what is asked or claimed
// about our addresses, to us or to everybody, and nothing else.
func TestTheKernelFilters(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	newPair(t)
	lan0, err := net.InterfaceByName("lan0")
	if err != nil {
		t.Fatal(err)
	}
	us, other := mac(lan0.HardwareAddr), mac{2, 0, 0, 0, 0, 7}
	group, err := ndp.SolicitedNodeMulticast(vip6)
	if err != nil {
		t.Fatal(err)
	}
	tagged := func(frame []byte) []byte {
		return append(append(bytes.Clone(frame[:12]), 0x81, 0, 0, 9), frame[12:]...)
	}
	gratuitous := func(a netip.Addr) []byte {
		frames, err := gratuitous(asker, a)
		if err != nil {
			t.Fatal(err)
		}
		return frames[len(frames)-1]
	}
	for family, c := range map[int]struct {
		spans          []span
		dropped, heard [][]byte
	}{
		protoARP: {
			spans: spansOf(map[[4]byte]struct{}{vip4.As4(): {}}),
			dropped: [][]byte{
				arpQuestion(t, broadcast(), client, vip4.Next()),
				arpQuestion(t, broadcast(), client, vip4.Prev()),
				arpQuestion(t, other, client, vip4),
				tagged(arpQuestion(t, broadcast(), client, vip4)),
				gratuitous(vip4.Next()),
			},
			heard: [][]byte{arpQuestion(t, broadcast(), client, vip4), arpQuestion(t, us, client, vip4), gratuitous(vip4), arpQuestion(t, broadcast(), vip4, client)},
		},
		protoIPv6: {
			spans: spansOf(map[[16]byte]struct{}{vip6.As16(): {}}),
			dropped: [][]byte{
				changeND(solicit(t, groupMAC(group), link6, group), ndTarget+15, 0x51),
				changeND(solicit(t, groupMAC(group), link6, group), ip6Hops, 254),
				changeND(solicit(t, groupMAC(group), link6, group), ndType, 133),
				change(solicit(t, groupMAC(group), link6, group), ip6Next, 17),
				solicit(t, other, link6, vip6),
				tagged(solicit(t, groupMAC(group), link6, group)),
				gratuitous(vip6.Next()),
			},
			heard: [][]byte{solicit(t, groupMAC(group), link6, group), solicit(t, us, link6, vip6), gratuitous(vip6)},
		},
	} {
		in, out := open(t, "lan0", c.spans, family), open(t, "far", nil, family).writer()
		for _, want := range c.heard {
			for _, frame := range append(c.dropped, want) {
				if err := out.write(frame); err != nil {
					t.Fatal(err)
				}
			}
			got, _ := in.read()
			if !bytes.Equal(got, want) {
				t.Errorf("heard %x, want %x", got, want)
			}
		}
	}
}

// A question is asked as often as the timing says, from nobody, and the answer awaited for
// as long: 600 ms before a first claim, 50 ms before a takeover.
func TestTheLANIsAskedSeveralTimes(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	newPair(t)
	a := New(Options{Log: slog.New(slog.DiscardHandler)})
	eventually(t, "the cable is up", func() bool {
		links, err := readLinks()
		return err == nil && slices.ContainsFunc(links, func(l link) bool { return l.Name == "lan0" && l.Up })
	})
	questions := []Question{{Address: vip4, Interfaces: []string{"lan0"}}, {Address: vip6, Interfaces: []string{"lan0"}}}
	for within, timing := range map[time.Duration]Timing{600 * time.Millisecond: FirstClaim(), 50 * time.Millisecond: Takeover()} {
		counts := map[string]chan int{"ARP": count(t, protoARP, vip4), "NDP": count(t, protoIPv6, vip6)}
		began := time.Now()
		found, heard, err := a.Listen(context.Background(), questions, timing)
		if took := time.Since(began); took < within || len(found) > 0 || heard || err != nil {
			t.Errorf("%+v: %v, heard %v, %v after %v; want silence for %v", timing, found, heard, err, took, within)
		}
		for form, asked := range counts {
			if n := <-asked; n != timing.Times {
				t.Errorf("%+v: asked %d times by %s", timing, n, form)
			}
		}
	}
	a.closing.Wait()
}

// count counts the questions for an address that arrive at far, from nobody,
// until there have been none for a second.
func count(t *testing.T, family int, address netip.Addr) chan int {
	t.Helper()
	spans := spansOfAddrs([]netip.Addr{address}, address.Is4())
	s := open(t, "far", spans, family)
	n := make(chan int, 1)
	arrived := make(chan []byte)
	go func() {
		defer close(arrived)
		for {
			frame, open := s.read()
			if !open {
				return
			}
			arrived <- bytes.Clone(frame)
		}
	}()
	go func() {
		asked, patience := 0, 5*time.Second
		for {
			select {
			case frame := <-arrived:
				patience = time.Second
				if family == protoARP && binary.BigEndian.Uint32(frame[arpSPA:]) == 0 || family == protoIPv6 && [16]byte(frame[ip6Src:ip6Dst]) == [16]byte{} {
					asked++
				}
			case <-time.After(patience):
				s.close()
				for range arrived {
				}
				n <- asked
				return
			}
		}
	}()
	return n
}

// change writes bytes into a frame.
func change(frame []byte, at int, b ...byte) []byte {
	copy(frame[at:], b)
	return frame
}

// changeND is change for a message with a checksum, which is made good again.
func changeND(frame []byte, at int, b ...byte) []byte {
	change(change(frame, at, b...), ndSum, 0, 0)
	binary.BigEndian.PutUint16(frame[ndSum:], ^sum(frame))
	return frame
}

package l2

import (
	"net"
	"net/netip"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mdlayher/arp"
	"github.com/vishvananda/netlink"
)

// BenchmarkAnswer is the work between a question's arrival and its answer.
func BenchmarkAnswer(b *testing.B) {
	a, out := newTestAnswerer(), make([]byte, 128)
	q4, q6 := arpQuestion(b, broadcast(), client, vip4), solicit(b, self, link6, vip6)
	b.Run("arp", func(b *testing.B) {
		for b.Loop() {
			a.arp(q4, out)
		}
	})
	b.Run("ndp", func(b *testing.B) {
		for b.Loop() {
			a.ndp(q6, out)
		}
	})
}

// BenchmarkLAN asks 20,000 questions a second about 5,000 addresses over a
// cable, and reports how long answers took and how many were lost. It needs
// root and makes a pair of interfaces for itself.
func BenchmarkLAN(b *testing.B) {
	if os.Geteuid() != 0 {
		b.Skip("needs root")
	}
	const addresses, rate = 5000, 20000
	pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "qsbench0"}, PeerName: "qsbench1"}
	if err := netlink.LinkAdd(pair); err != nil {
		b.Fatal(err)
	}
	defer func() { _ = netlink.LinkDel(pair) }()
	for _, name := range []string{"qsbench0", "qsbench1"} {
		l, err := netlink.LinkByName(name)
		if err == nil {
			err = netlink.LinkSetUp(l)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	time.Sleep(200 * time.Millisecond) // carrier
	links, err := readLinks()
	if err != nil {
		b.Fatal(err)
	}
	at := func(name string) link {
		return links[slices.IndexFunc(links, func(l link) bool { return l.Name == name })]
	}
	r, err := newResponder(at("qsbench0"), &counters{}, &counters{}, make(chan Conflict, 1))
	if err != nil {
		b.Fatal(err)
	}
	defer r.close()
	t := &tables{v4: map[[4]byte]struct{}{}, v6: map[[16]byte]struct{}{}}
	var all []netip.Addr
	for i := range addresses {
		a := [4]byte{10, 20, byte(i >> 8), byte(i)}
		t.v4[a] = struct{}{}
		all = append(all, netip.AddrFrom4(a))
	}
	if err := r.set(t); err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	for _, a := range all[:1000] {
		if err := r.announce(a); err != nil {
			b.Fatal(err)
		}
	}
	b.Logf("1,000 addresses announced in %v", time.Since(began).Round(time.Microsecond))
	ask(b, at("qsbench1"), all, rate)
}

// ask sends paced questions from l and reports on the answers.
func ask(b *testing.B, l link, all []netip.Addr, rate int) {
	filter, err := arpFilter([]span{{0, ^uint32(0)}})
	if err != nil {
		b.Fatal(err)
	}
	ifi := &net.Interface{Index: l.index, Name: l.Name, HardwareAddr: l.mac[:]}
	in, err := openSocket(ifi, protoARP, filter)
	if err != nil {
		b.Fatal(err)
	}
	out, err := openSocket(ifi, protoARP, filter)
	if err != nil {
		b.Fatal(err)
	}
	defer out.close()
	n := 2 * rate
	sent := make([]atomic.Int64, len(all)) // when, by address; one question each is under way
	took := make([]time.Duration, 0, n)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			frame, open := in.read()
			if !open {
				return
			}
			i := int(frame[arpSPA+2])<<8 | int(frame[arpSPA+3])
			if len(frame) >= arpLen && frame[arpOp+1] == arpReply && i < len(all) {
				if at := sent[i].Swap(0); at != 0 {
					took = append(took, time.Duration(time.Now().UnixNano()-at))
				}
			}
		}
	}()
	frames := make([][]byte, len(all))
	for i, a := range all {
		if frames[i], err = arpFrame(arp.OperationRequest, l.mac, netip.IPv4Unspecified(), mac{}, a); err != nil {
			b.Fatal(err)
		}
	}
	began := time.Now()
	for i := range n {
		if due := began.Add(time.Duration(i) * time.Second / time.Duration(rate)); time.Until(due) > 0 {
			time.Sleep(time.Until(due))
		}
		sent[i%len(all)].Store(time.Now().UnixNano())
		if err := out.write(frames[i%len(all)]); err != nil {
			b.Fatal(err)
		}
	}
	time.Sleep(100 * time.Millisecond)
	in.close()
	<-done
	slices.Sort(took)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(n-len(took)), "lost")
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

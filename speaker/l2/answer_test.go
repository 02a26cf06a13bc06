package l2

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"testing"

	"github.com/mdlayher/arp"
	"github.com/mdlayher/ndp"
	"golang.org/x/net/bpf"
)

var (
	self   = mac{2, 0, 0, 0, 0, 1}
	asker  = mac{2, 0, 0, 0, 0, 9}
	vip4   = netip.MustParseAddr("10.0.0.50")
	vip6   = netip.MustParseAddr("2001:db8::50")
	client = netip.MustParseAddr("10.0.0.9")
	link6  = netip.MustParseAddr("fe80::9")
)

func newTestAnswerer() *answerer {
	a := newAnswerer(self)
	a.tables.Store(&tables{
		v4: map[[4]byte]struct{}{vip4.As4(): {}},
		v6: map[[16]byte]struct{}{vip6.As16(): {}},
	})
	return a
}

func arpQuestion(t testing.TB, to mac, from netip.Addr, target netip.Addr) []byte {
	t.Helper()
	f, err := arpFrame(arp.OperationRequest, asker, from, mac{}, target)
	if err != nil {
		t.Fatal(err)
	}
	copy(f, to[:])
	return f
}

func TestARPIsAnswered(t *testing.T) {
	cases := []struct {
		name   string
		frame  []byte
		answer bool
	}{
		{"broadcast", arpQuestion(t, broadcast(), client, vip4), true},
		{"unicast to us", arpQuestion(t, self, client, vip4), true},
		{"unicast to another host", arpQuestion(t, mac{2, 0, 0, 0, 0, 7}, client, vip4), false},
		{"probe of duplicate detection", arpQuestion(t, broadcast(), netip.IPv4Unspecified(), vip4), true},
		{"another address", arpQuestion(t, broadcast(), client, client.Next()), false},
		{"padded to 60 bytes", append(arpQuestion(t, broadcast(), client, vip4), make([]byte, 18)...), true},
		{"cut short", arpQuestion(t, broadcast(), client, vip4)[:41], false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			out := make([]byte, 128)
			v := newTestAnswerer().arp(c.frame, out)
			if !c.answer {
				if v.reply != 0 || v.asked {
					t.Fatalf("answered: %+v", v)
				}
				return
			}
			var p arp.Packet
			if err := p.UnmarshalBinary(out[ethLen:v.reply]); err != nil {
				t.Fatal(err)
			}
			if p.Operation != arp.OperationReply || p.SenderIP != vip4 || !bytes.Equal(p.SenderHardwareAddr, self[:]) || !bytes.Equal(p.TargetHardwareAddr, asker[:]) {
				t.Errorf("answer %+v", p)
			}
			if mac(out[:6]) != asker || mac(out[6:12]) != self {
				t.Errorf("sent from %x to %x", out[6:12], out[:6])
			}
		})
	}
}

func TestARPClaimsOfOthersAreSeen(t *testing.T) {
	for _, op := range []arp.Operation{arp.OperationRequest, arp.OperationReply} {
		f, err := arpFrame(op, asker, vip4, mac{}, vip4)
		if err != nil {
			t.Fatal(err)
		}
		if v := newTestAnswerer().arp(f, make([]byte, 128)); v.claimed != vip4 || v.claimant != asker || v.reply != 0 {
			t.Errorf("%v: %+v", op, v)
		} else if v.answer {
			t.Errorf("%v to everybody is taken for an answer", op)
		}
		copy(f, self[:])
		if v := newTestAnswerer().arp(f, make([]byte, 128)); v.answer != (op == arp.OperationReply) {
			t.Errorf("%v to us: %+v", op, v)
		}
		own, err := arpFrame(op, self, vip4, mac{}, vip4)
		if err != nil {
			t.Fatal(err)
		}
		if v := newTestAnswerer().arp(own, make([]byte, 128)); v.claimed.IsValid() {
			t.Errorf("%v: our own frame counts as a claim", op)
		}
	}
}

// What is neither a question nor an answer claims nothing: a defence would be
// an answer to it.
func TestOtherARPOperationsClaimNothing(t *testing.T) {
	for _, op := range []arp.Operation{0, 3, 4, 8, 9, 25, 0xffff} {
		f, err := arpFrame(op, asker, vip4, mac{}, vip4)
		if err != nil {
			t.Fatal(err)
		}
		if v := newTestAnswerer().arp(f, make([]byte, 128)); v != (reading{}) {
			t.Errorf("operation %d: %+v", op, v)
		}
	}
}

// A frame may leave a bond by any port, with the MAC of that port. Who it is
// from, and where answers go, is what it says inside, as in ARP.
func TestNeighboursAreWhomTheySayTheyAre(t *testing.T) {
	port := mac{2, 0, 0, 0, 0, 0x99}
	source := &ndp.LinkLayerAddress{Direction: ndp.Source, Addr: net.HardwareAddr(asker[:])}
	question := solicit(t, self, link6, vip6, source)
	copy(question[6:12], port[:])
	out := make([]byte, 128)
	if v := newTestAnswerer().ndp(question, out); v.reply == 0 || mac(out[:6]) != asker {
		t.Errorf("answered to %x, want %x: %+v", out[:6], asker, v)
	}
	for _, c := range []struct {
		name    string
		options []ndp.Option
		want    mac
	}{
		{"with the option", []ndp.Option{&ndp.LinkLayerAddress{Direction: ndp.Target, Addr: net.HardwareAddr(asker[:])}}, asker},
		{"without", nil, port},
	} {
		claim, err := ndFrame(port, vip6, netip.IPv6LinkLocalAllNodes(), &ndp.NeighborAdvertisement{TargetAddress: vip6, Options: c.options})
		if err != nil {
			t.Fatal(err)
		}
		if v := newTestAnswerer().ndp(claim, out); v.claimed != vip6 || v.claimant != c.want {
			t.Errorf("%s: claimed by %x, want %x: %+v", c.name, v.claimant, c.want, v)
		}
	}
	// Ours come back, by whichever of the two it can be told.
	back, err := gratuitous(self, vip6)
	if err != nil {
		t.Fatal(err)
	}
	copy(back[0][6:12], port[:])
	if v := newTestAnswerer().ndp(back[0], out); v != (reading{}) {
		t.Errorf("our own frame by another port: %+v", v)
	}
}

func solicit(t testing.TB, to mac, from, dst netip.Addr, options ...ndp.Option) []byte {
	t.Helper()
	f, err := ndFrame(asker, from, dst, &ndp.NeighborSolicitation{TargetAddress: vip6, Options: options})
	if err != nil {
		t.Fatal(err)
	}
	copy(f, to[:])
	return f
}

func TestSolicitationsAreAnswered(t *testing.T) {
	group, err := ndp.SolicitedNodeMulticast(vip6)
	if err != nil {
		t.Fatal(err)
	}
	source := &ndp.LinkLayerAddress{Direction: ndp.Source, Addr: net.HardwareAddr(asker[:])}
	broken := solicit(t, groupMAC(group), link6, group, source)
	broken[ndSum]++
	cases := []struct {
		name              string
		frame             []byte
		answer, solicited bool
	}{
		{"to the group", solicit(t, groupMAC(group), link6, group, source), true, true},
		{"unicast, with the option", solicit(t, self, link6, vip6, source), true, true},
		{"unicast reachability probe without the option", solicit(t, self, link6, vip6), true, true},
		{"duplicate address detection", solicit(t, groupMAC(group), netip.IPv6Unspecified(), group), true, false},
		{"detection that tells a link address", solicit(t, groupMAC(group), netip.IPv6Unspecified(), group, source), false, false},
		{"detection sent unicast", solicit(t, self, netip.IPv6Unspecified(), vip6), false, false},
		{"to another host", solicit(t, mac{2, 0, 0, 0, 0, 7}, link6, vip6), false, false},
		{"wrong checksum", broken, false, false},
		{"cut short", solicit(t, self, link6, vip6)[:ndOptions-1], false, false},
		{"an option of no length", changed(solicit(t, self, link6, vip6, source), ndOptions+1, 0), false, false},
		{"an option that is cut off", changed(solicit(t, self, link6, vip6, source), ndOptions+1, 2), false, false},
		{"from another link", changed(solicit(t, self, link6, vip6), ip6Hops, 254), false, false},
		{"behind another header", changed(solicit(t, self, link6, vip6), ip6Next, 0), false, false},
		{"from a group", changed(solicit(t, self, link6, vip6), ip6Src, 0xff), false, false},
		{"padded", append(solicit(t, self, link6, vip6), make([]byte, 6)...), true, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			out := make([]byte, 128)
			v := newTestAnswerer().ndp(c.frame, out)
			if !c.answer {
				if v.reply != 0 {
					t.Fatalf("answered: %+v", v)
				}
				return
			}
			checkAdvertisement(t, out[:v.reply], c.solicited)
		})
	}
}

// changed changes one byte of a frame, and its checksum with it.
func changed(frame []byte, at int, to byte) []byte {
	frame[at] = to
	checksummed(frame)
	return frame
}

func checkAdvertisement(t *testing.T, frame []byte, solicited bool) {
	t.Helper()
	if len(frame) == 0 {
		t.Fatal("no answer")
	}
	m, err := ndp.ParseMessage(frame[ip6Len:])
	if err != nil {
		t.Fatal(err)
	}
	na := m.(*ndp.NeighborAdvertisement)
	dst := netip.AddrFrom16([16]byte(frame[ip6Dst:ip6Len]))
	want := link6
	if !solicited {
		want = netip.IPv6LinkLocalAllNodes()
	}
	if na.Solicited != solicited || !na.Override || na.TargetAddress != vip6 || dst != want {
		t.Errorf("answer %+v to %s", na, dst)
	}
	option := na.Options[0].(*ndp.LinkLayerAddress)
	if option.Direction != ndp.Target || !bytes.Equal(option.Addr, self[:]) {
		t.Errorf("option %+v", option)
	}
	if sum(frame) != 0xffff {
		t.Error("wrong checksum")
	}
	// The library must write the same bytes.
	same, err := ndFrame(self, vip6, dst, na)
	if err != nil || !bytes.Equal(same[6:], frame[6:]) {
		t.Errorf("library writes\n%x, we\n%x (%v)", same, frame, err)
	}
}

func TestAnswersAllocateNothing(t *testing.T) {
	group, err := ndp.SolicitedNodeMulticast(vip6)
	if err != nil {
		t.Fatal(err)
	}
	a, out := newTestAnswerer(), make([]byte, 128)
	q4 := arpQuestion(t, broadcast(), client, vip4)
	q6 := solicit(t, groupMAC(group), link6, group)
	if n := testing.AllocsPerRun(100, func() {
		if a.arp(q4, out).reply == 0 || a.ndp(q6, out).reply == 0 {
			t.Fatal("no answer")
		}
	}); n != 0 {
		t.Errorf("%v allocations per answer", n)
	}
}

// A frame is only answered, and only counts as a claim, if the library, which is
// slow and was not written by us, reads the same from it.
func FuzzARP(f *testing.F) {
	f.Add(arpQuestion(f, broadcast(), client, vip4))
	f.Add(arpQuestion(f, broadcast(), netip.IPv4Unspecified(), vip4))
	for _, op := range []arp.Operation{arp.OperationRequest, arp.OperationReply, 8} {
		claim, err := arpFrame(op, asker, vip4, mac{}, vip4)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(append(claim, make([]byte, 18)...))
	}
	f.Add(arpQuestion(f, broadcast(), client, vip4)[:ethLen+8])
	f.Add(append(ethHeader(broadcast(), asker, protoARP), 0, 1, 8, 0, 0xff, 0xff, 0, 1)) // lengths that overflowed a parser once
	f.Fuzz(func(t *testing.T, frame []byte) {
		v := newTestAnswerer().arp(frame, make([]byte, 128))
		if v == (reading{}) {
			return
		}
		var p arp.Packet
		if err := p.UnmarshalBinary(frame[ethLen:]); err != nil {
			t.Fatalf("%x is %+v: %v", frame, v, err)
		}
		asked := v.asked && v.reply == arpLen && p.Operation == arp.OperationRequest && p.TargetIP == vip4
		claims := v.claimed == vip4 && v.reply == 0 && p.SenderIP == vip4 && bytes.Equal(p.SenderHardwareAddr, v.claimant[:]) &&
			(p.Operation == arp.OperationRequest || p.Operation == arp.OperationReply)
		if asked == claims {
			t.Errorf("%x is %+v: %+v", frame, v, p)
		}
	})
}

func FuzzNDP(f *testing.F) {
	f.Add(solicit(f, self, link6, vip6))
	long := solicit(f, self, link6, vip6)
	binary.BigEndian.PutUint16(long[ip6Payload:], 0xffff) // says more than it holds
	f.Add(long)
	f.Add(append(solicit(f, self, link6, vip6), 1, 0)) // an option of no length
	group, err := ndp.SolicitedNodeMulticast(vip6)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(solicit(f, groupMAC(group), netip.IPv6Unspecified(), group))
	claim, err := gratuitous(asker, vip6)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(claim[0])
	f.Add(append(claim[0], make([]byte, 6)...)) // padding behind the message
	odd := solicit(f, self, link6, vip6, &ndp.LinkLayerAddress{Direction: ndp.Source, Addr: net.HardwareAddr(asker[:])})
	odd[ndOptions+1] = 2 // a link-layer address of another kind of link
	f.Add(append(odd, make([]byte, 8)...))
	f.Fuzz(func(t *testing.T, frame []byte) {
		checkND(t, frame)
		if checksummed(frame) { // which no fuzzer guesses
			checkND(t, frame)
		}
	})
}

// checkND judges what the answerer makes of a frame. What the library reads are
// the fixed parts: it minds what is wrong in options that RFC 4861 6.1 ignores.
func checkND(t *testing.T, frame []byte) {
	t.Helper()
	v := newTestAnswerer().ndp(frame, make([]byte, 128))
	if v == (reading{}) {
		return
	}
	m, err := ndp.ParseMessage(frame[ip6Len:ndOptions])
	if err != nil {
		t.Fatalf("%x is %+v: %v", frame, v, err)
	}
	ns, asked := m.(*ndp.NeighborSolicitation)
	asked = asked && v.asked && v.reply == naLen && ns.TargetAddress == vip6
	na, claims := m.(*ndp.NeighborAdvertisement)
	claims = claims && v.claimed == vip6 && v.reply == 0 && na.TargetAddress == vip6
	if asked == claims {
		t.Errorf("%x is %+v: %+v", frame, v, m)
	}
}

// checksummed makes the checksum right, where there is room for one.
func checksummed(frame []byte) bool {
	if len(frame) < ndOptions {
		return false
	}
	end := ip6Len + int(binary.BigEndian.Uint16(frame[ip6Payload:]))
	if end < ndOptions || end > len(frame) {
		return false
	}
	frame[ndSum], frame[ndSum+1] = 0, 0
	binary.BigEndian.PutUint16(frame[ndSum:], ^sum(frame[:end]))
	return true
}

// A sign of life is what a host says that was asked, to us: nothing that somebody else
// is told, asks, or says unasked to all.
func TestSignsOfLife(t *testing.T) {
	near6 := netip.MustParseAddr("2001:db8::9")
	a := newTestAnswerer()
	near := *a.tables.Load()
	near.near4, near.near6 = map[[4]byte]struct{}{client.As4(): {}}, map[[16]byte]struct{}{near6.As16(): {}}
	a.tables.Store(&near)
	said := func(op arp.Operation, to mac, from netip.Addr) []byte {
		f, err := arpFrame(op, asker, from, self, netip.MustParseAddr("10.0.0.1"))
		if err != nil {
			t.Fatal(err)
		}
		copy(f, to[:])
		return f
	}
	for name, c := range map[string]struct {
		frame []byte
		sign  bool
	}{
		"a reply to us":          {said(arp.OperationReply, self, client), true},
		"a reply to another":     {said(arp.OperationReply, asker, client), false},
		"a reply to everybody":   {said(arp.OperationReply, broadcast(), client), false},
		"a question to us":       {said(arp.OperationRequest, self, client), false},
		"a reply of nobody near": {said(arp.OperationReply, self, client.Next()), false},
	} {
		if v := a.arp(c.frame, make([]byte, 128)); v != (reading{sign: c.sign}) {
			t.Errorf("%s: %+v", name, v)
		}
	}
	advertise := func(target netip.Addr, flags byte, to mac) []byte {
		f := make([]byte, naLen)
		var other answerer
		other.self = asker
		other.advertise(f, target.As16(), to, link6.As16(), false)
		f[ndFlags] = flags
		binary.BigEndian.PutUint16(f[ndSum:], 0)
		binary.BigEndian.PutUint16(f[ndSum:], ^sum(f))
		return f
	}
	for name, c := range map[string]struct {
		frame []byte
		sign  bool
	}{
		"an answer to us":            {advertise(near6, flagSolicited, self), true},
		"an answer to another":       {advertise(near6, flagSolicited, asker), false},
		"an announcement":            {advertise(near6, flagOverride, self), false},
		"an answer of nobody near":   {advertise(near6.Next(), flagSolicited, self), false},
		"an answer with a false sum": {change(advertise(near6, flagSolicited, self), ndSum, 1, 1), false},
	} {
		if v := a.ndp(c.frame, make([]byte, 128)); v != (reading{sign: c.sign}) {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// The kernel lets through what is answered from near, and not what is asked from there.
func TestTheFilterLetsSignsThrough(t *testing.T) {
	program := func(f filter) *bpf.VM {
		raw, err := f(1, nil, []span{{lastWord(client.As4()), lastWord(client.As4())}})
		if err != nil {
			t.Fatal(err)
		}
		// A VM knows no extensions: behind those of prologue.
		ins, ok := bpf.Disassemble(raw)
		vm, err := bpf.NewVM(ins[len(prologue(1)):])
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		return vm
	}
	vm := program(arpFilter)
	for from, op := range map[netip.Addr]arp.Operation{client: arp.OperationReply, client.Next(): arp.OperationReply, client.Prev(): arp.OperationRequest} {
		f, err := arpFrame(op, asker, from, self, vip4)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := vm.Run(f); err != nil || (n > 0) != (from == client) {
			t.Errorf("%v from %v passes: %v, %v", op, from, n > 0, err)
		}
	}
	if n, err := vm.Run(arpQuestion(t, broadcast(), client, vip4)); err != nil || n > 0 {
		t.Errorf("a question of one that is near passes: %v, %v", n > 0, err)
	}
}

func TestTheLargestFilterAssembles(t *testing.T) {
	var spans []span
	for i := range uint32(maxSpans) {
		spans = append(spans, span{i * 100, i*100 + 1})
	}
	if _, err := arpFilter(1, spans, spans); err != nil {
		t.Error(err)
	}
	if _, err := ndpFilter(1, spans, spans); err != nil {
		t.Error(err)
	}
}

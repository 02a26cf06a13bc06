package session

import (
	"bytes"
	"encoding/hex"
	"math"
	"testing"
	"time"
)

// full has every field set, and differs from its neighbours in each.
func full() Packet {
	return Packet{
		Diag: DiagNeighbor, State: Up, Poll: true, Demand: true, Multiplier: 3,
		MyDiscriminator: 0x01020304, YourDiscriminator: 0x05060708,
		DesiredMinTx: 50 * time.Millisecond, RequiredMinRx: time.Second, MinEcho: time.Microsecond,
	}
}

func TestPacketIsThatOfTheRFC(t *testing.T) {
	const want = "23e2031801020304050607080000c350000f424000000001"
	p := full()
	b := p.Append(nil)
	if got := hex.EncodeToString(b); got != want {
		t.Errorf("encoded\n got %s\nwant %s", got, want)
	}
	for name, payload := range map[string][]byte{"alone": b, "with padding behind it": append(bytes.Clone(b), 1, 2, 3)} {
		if got, why := Parse(payload); why != "" || got != p {
			t.Errorf("%s: parsed %+v, %q", name, got, why)
		}
	}
	p.Poll, p.Final, p.Demand = false, true, false
	if b := p.Append(nil); b[1] != 0xd0 {
		t.Errorf("a final packet that is up has flags %#x, want 0xd0", b[1])
	}
}

func TestIntervalsThatDoNotFitAreBounded(t *testing.T) {
	p := full()
	p.DesiredMinTx, p.RequiredMinRx = 2*time.Hour, -time.Second
	got, _ := Parse(p.Append(nil))
	if got.DesiredMinTx != math.MaxUint32*time.Microsecond || got.RequiredMinRx != 0 {
		t.Errorf("got %v and %v", got.DesiredMinTx, got.RequiredMinRx)
	}
}

// malformed are the rules of RFC 5880 6.8.6 for a packet alone, each broken once.
func malformed() map[Malformed][][]byte {
	change := func(at int, to ...byte) []byte {
		p := full()
		b := p.Append(nil)
		copy(b[at:], to)
		return b
	}
	anonymous := func(s State) []byte {
		p := full()
		p.State, p.YourDiscriminator = s, 0
		return p.Append(nil)
	}
	return map[Malformed][][]byte{
		"":               {change(0), anonymous(Down), anonymous(AdminDown), change(0, 0x3f), change(1, 0xff&^flagAuthenticated&^flagMultipoint)},
		BadVersion:       {change(0, 0x03), change(0, 0x43), change(0, 0xe3)},
		BadLength:        {nil, {}, change(0)[:23], change(3, 23), change(3, 0), change(3, 25), change(3, 255)},
		BadMultiplier:    {change(2, 0)},
		BadMultipoint:    {change(1, 0xc1)},
		BadDiscriminator: {change(4, 0, 0, 0, 0)},
		BadState:         {anonymous(Up), anonymous(Init)},
		Authenticated:    {change(1, 0xc4), append(change(1, 0xc4), 1, 5, 'a', 'b', 'c')},
	}
}

func TestParseRefuses(t *testing.T) {
	for want, all := range malformed() {
		for _, b := range all {
			if p, why := Parse(b); why != want || (why != "" && p != Packet{}) {
				t.Errorf("%x: %q and %+v, want %q", b, why, p, want)
			}
		}
	}
}

// TestPacketsAllocateNothing is a promise to whoever sends and hears thousands
// a second.
func TestPacketsAllocateNothing(t *testing.T) {
	b, bad := make([]byte, 0, PacketLength), malformed()[BadVersion][0]
	if n := testing.AllocsPerRun(1000, func() {
		p := full()
		wire := p.Append(b)
		_, _ = Parse(wire)
		_, _ = Parse(bad)
	}); n != 0 {
		t.Errorf("%v allocations per packet", n)
	}
}

func FuzzParse(f *testing.F) {
	for _, all := range malformed() {
		for _, b := range all {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, why := Parse(b)
		if why != "" {
			return
		}
		again := p.Append(nil)
		if q, why := Parse(again); why != "" || q != p {
			t.Fatalf("%x became %x: %+v, then %+v, %q", b, again, p, q, why)
		}
		s := New(7, Config{Transmit: time.Second, Receive: time.Second, Multiplier: 3})
		now := time.Unix(0, 0)
		s.Receive(&p, now)
		for n := 0; ; n++ {
			if _, send := s.Tick(now, 0); !send {
				break
			} else if n == 2 {
				t.Fatalf("%x made it send more than two packets at once", b)
			}
		}
		if at, ok := s.Next(); ok && !at.After(now) {
			t.Fatalf("%x: Next is %v, which is now, and nothing is due", b, at.Sub(now))
		}
	})
}

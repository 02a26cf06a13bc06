package l2

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/mdlayher/arp"
)

// Many addresses that arrive together are announced in batches with pauses, so
// that no switch drops what comes too fast.
func TestAnnouncementsArePaced(t *testing.T) {
	a, now := New(Options{}), time.Unix(1000, 0)
	here := responderKey{name: "lan0"}
	a.responders[here] = &responder{}
	const many = 3*sendBatch + 1
	for i := range uint32(many) {
		a.sched.arm(place{netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, 10<<24|i))), here}, now)
	}
	sent := func() (n int) {
		for _, e := range a.sched.byKey {
			n += e.Value.step
		}
		return n
	}
	for turn := 1; turn <= 3; turn++ {
		wait, some := a.sendDue(now)
		if sent() != turn*sendBatch || !some || wait != sendPause {
			t.Errorf("turn %d: %d announced, and then a pause of %v; want %d and %v", turn, sent(), wait, turn*sendBatch, sendPause)
		}
	}
	if wait, _ := a.sendDue(now); sent() != many || wait != burst()[1] {
		t.Errorf("%d of %d announced in the end, and the next in %v", sent(), many, wait)
	}
	// At this pace the addresses of a dead node are out within a fifth of a second.
	if all := 1000 / sendBatch * sendPause; all > 200*time.Millisecond {
		t.Errorf("a thousand addresses take %v", all)
	}
}

// A stranger is told and answered once per interval, a member never; and what
// is not ours is defended against nobody.
func TestDefenceKnowsItsLimits(t *testing.T) {
	member, stranger := mac{2, 0, 0, 0, 0, 7}, mac{2, 0, 0, 0, 0, 0x99}
	a, now := New(Options{}), time.Unix(1000, 0)
	a.want.Store(&Want{Members: map[string]struct{}{"02:00:00:00:00:07": {}}})
	here, there := responderKey{name: "lan0"}, responderKey{name: "lan1"}
	a.responders[here], a.responders[there] = &responder{}, &responder{}
	a.serving[place{vip4, here}], a.serving[place{vip4, there}] = 0, 0
	for _, c := range []struct {
		name  string
		at    place
		from  mac
		after time.Duration
		told  bool
	}{
		{"a member while the address changes hands", place{vip4, here}, member, 0, false},
		{"an address of others", place{vip4.Next(), here}, stranger, 0, false},
		{"a stranger", place{vip4, here}, stranger, 0, true},
		{"and on another LAN", place{vip4, there}, stranger, 0, true},
		{"and again, too soon", place{vip4, here}, stranger, defence - time.Millisecond, false},
		{"and again, in time", place{vip4, here}, stranger, defence, true},
		{"too soon after that", place{vip4, here}, stranger, 2*defence - time.Millisecond, false},
	} {
		a.conflict(claimant{c.at, c.from}, now.Add(c.after))
		select {
		case got := <-a.Conflicts():
			if want := (Conflict{c.at.address, c.at.on.name, net.HardwareAddr(c.from[:]).String()}); !c.told || got != want {
				t.Errorf("%s: told of %+v", c.name, got)
			}
		default:
			if c.told {
				t.Errorf("%s: not told", c.name)
			}
		}
	}
}

// Nobody chooses the beat: it is a minute.
func TestTheBeatIsAMinute(t *testing.T) {
	if beat := New(Options{}).sched.beat; beat != time.Minute {
		t.Errorf("an address is announced again after %v", beat)
	}
}

// What is said unasked is what hosts heed: the two forms of ARP, or an
// advertisement to all nodes that overrides what they knew.
func TestWhatIsSaidUnasked(t *testing.T) {
	frames, err := gratuitous(self, vip4)
	if err != nil || len(frames) != 2 {
		t.Fatal(frames, err)
	}
	for i, op := range []arp.Operation{arp.OperationRequest, arp.OperationReply} {
		var p arp.Packet
		if err := p.UnmarshalBinary(frames[i][ethLen:]); err != nil {
			t.Fatal(err)
		}
		if mac(frames[i][:6]) != broadcast() || p.Operation != op || p.SenderIP != vip4 || p.TargetIP != vip4 || !bytes.Equal(p.SenderHardwareAddr, self[:]) {
			t.Errorf("%v to %x: %+v", op, frames[i][:6], p)
		}
	}
	if frames, err = gratuitous(self, vip6); err != nil || len(frames) != 1 {
		t.Fatal(frames, err)
	}
	if to := mac(frames[0][:6]); to != (mac{0x33, 0x33, 0, 0, 0, 1}) {
		t.Errorf("sent to %x", to)
	}
	checkAdvertisement(t, frames[0], false)
}

package members

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"quayside.io/speaker/announce"
)

// exchange delivers all that members have to gossip to each other, until nothing is new.
func exchange(all ...*Members) {
	for range 10 {
		for _, from := range all {
			from.answer()
			for _, b := range from.queue.GetBroadcasts(0, maxMessage) {
				for _, to := range all {
					(&delegate{to}).NotifyMsg(b)
				}
			}
		}
	}
}

// An address went away while it moved, and not all know of its last owner, which has died
// since. The address comes back: who had it before answers at once, and must hear of the
// better claim, or the dead one has the address as soon as it lives again.
func TestAnOwnerHearsOfTheBetterClaimOfWhoIsGone(t *testing.T) {
	vip := netip.MustParseAddr("10.0.0.1")
	there, gone := map[netip.Addr]struct{}{vip: {}}, map[netip.Addr]struct{}{}
	for name, restarted := range map[string]bool{"it remembers its claim": false, "it has its claim from its SpeakerStatus": true} {
		t.Run(name, func(t *testing.T) {
			var all []*Members
			for _, node := range []string{"n1", "n2"} {
				m, err := New(Options{NodeName: node})
				if err != nil {
					t.Fatal(err)
				}
				m.alive["n1"], m.alive["n2"] = struct{}{}, struct{}{}
				all = append(all, m)
			}
			n1, n2 := all[0], all[1]
			now := time.Unix(1000, 0)
			know := func(known map[netip.Addr]struct{}) {
				for _, m := range all {
					m.state.know(known, nil, now)
				}
				now = now.Add(time.Second)
			}
			know(there)
			if !restarted {
				n1.broadcast(n1.state.claim(map[netip.Addr]int64{vip: 3}))
				exchange(all...)
			}
			n2.state.merge(message{kind: kindClaims, node: "n3", claims: []claimed{{vip, 4}}}, true)
			know(gone)
			know(there)
			n1.broadcast(n1.state.claim(map[netip.Addr]int64{vip: 3}))
			exchange(all...)
			for _, m := range all {
				if got, want := m.View().Claims[vip], (announce.Claim{Epoch: 4, Node: "n3"}); got != want {
					t.Errorf("%s: the best claim is %v, want %v", m.opts.NodeName, got, want)
				}
			}
			n1.broadcast(n1.state.claim(map[netip.Addr]int64{vip: 5}))
			exchange(all...)
			if got := fmt.Sprint(n2.View().Claims[vip]); got != fmt.Sprint(announce.Claim{Epoch: 5, Node: "n1"}) {
				t.Errorf("raised, and known as %s", got)
			}
		})
	}
}

package ownership

import (
	"net/netip"
	"testing"
	"time"

	"quayside.io/speaker/announce"
	"quayside.io/test/objects"
)

// A node has an address by a claim of before, and then hears of a better one. If that is of
// a member that is gone, nobody else answers for the address: the node keeps it, and says
// so with a better claim still. If that member lives, or this node is itself in doubt, or
// has had the address for long, it yields.
func TestAResumedAddressOutlivesTheClaimOfWhoIsGone(t *testing.T) {
	a := netip.MustParseAddr(objects.VIP(0))
	for name, tt := range map[string]struct {
		alive, cut bool
		after      time.Duration
		epoch      int64
		want       int64 // 0: it yields
	}{
		"it is gone":                {after: time.Second, epoch: 4, want: 5},
		"it lives":                  {after: time.Second, epoch: 4, alive: true},
		"its claim is old news":     {after: time.Hour, epoch: 4},
		"no better claim could be":  {after: time.Second, epoch: announce.MaxCount(began().Add(time.Second))},
		"this node may be cut off":  {after: time.Second, epoch: 4, cut: true},
		"its claim is not a better": {after: time.Second, epoch: 2, want: 3},
	} {
		t.Run(name, func(t *testing.T) {
			m, w := together(holder("n1", ownMAC, objects.VIP(0), 3))
			if out := m.Step(began(), w); out.Members.Claims[a] != 3 || len(out.LAN.Addresses) != 1 {
				t.Fatalf("it answers for %v, and claims %v", out.LAN.Addresses, out.Members.Claims)
			}
			w.Members = w.Members.copied()
			if delete(w.Members.Alive, "n2"); tt.alive {
				w.Members.Alive["n2"] = struct{}{}
			}
			w.Members.Claims[a] = announce.Claim{Epoch: tt.epoch, Node: "n2"}
			if tt.cut {
				m.holdings.cutAll()
			}
			out := m.Step(began().Add(tt.after), w)
			if _, answers := out.LAN.Addresses[a]; answers != (tt.want > 0) || out.Members.Claims[a] != tt.want {
				t.Errorf("it answers: %v, with claims %v, want epoch %d", answers, out.Members.Claims, tt.want)
			}
			if taken := len(out.Changes); tt.want > 0 && taken > 0 {
				t.Errorf("it kept the address, and tells of %+v", out.Changes)
			}
		})
	}
}

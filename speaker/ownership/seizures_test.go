package ownership

import (
	"maps"
	"net/netip"
	"testing"
	"time"

	"quayside.io/speaker/announce"
)

// To whom an address goes is told of those that this node took from another of late.
func TestWhatWasTakenIsHandedOverByName(t *testing.T) {
	a := netip.MustParseAddr("10.0.0.50")
	plan := map[netip.Addr]announce.Claim{a: {Epoch: 4, Node: "n3"}}
	for _, c := range []struct {
		name  string
		from  string
		cause announce.Cause
		after time.Duration
		told  bool
	}{
		{"taken from one that may not serve it", "n2", announce.Ineligible, time.Second, true},
		{"taken from one that seemed dead", "n2", announce.Died, time.Second, true},
		{"taken long ago", "n2", announce.Ineligible, announce.FlapReset + 1, false},
		{"taken from one that left", "n2", announce.Leaving, time.Second, false},
		{"taken first", "", announce.First, time.Second, false},
		{"taken back from the LAN", "n1", announce.Returned, time.Second, false},
	} {
		s := seizures{}
		s.note(announce.Take{Address: a, From: c.from, Cause: c.cause}, "n1", began())
		at := began().Add(c.after)
		if told := s.among(plan, at); maps.Equal(told, plan) != c.told || !c.told && told != nil {
			t.Errorf("%s: it tells %v", c.name, told)
		}
		if c.told {
			s.note(announce.Take{Address: a.Next(), From: "n2", Cause: announce.Died}, "n1", began().Add(announce.FlapReset+1))
			if len(s) != 1 {
				t.Errorf("%s: what is over is kept: %v", c.name, s)
			}
		}
	}
}

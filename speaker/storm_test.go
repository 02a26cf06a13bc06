package speaker

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"quayside.io/test/busy"
)

// TestStorm keeps every core busy and drops a tenth of all packets: nothing
// moves. Six seconds here; QUAYSIDE_SOAK asks for ten minutes.
func TestStorm(t *testing.T) { storm(t, "default") }

// TestStormFast is the same with the profile that doubts after 50 ms, and so is often
// wrong here: the LAN knows better.
func TestStormFast(t *testing.T) { storm(t, "fast") }

func storm(t *testing.T, profile string) {
	if !inside(t, "nft") {
		return
	}
	f := newFleet(t, 3)
	f.profile = profile
	f.startAll()
	before := f.owners()
	t.Logf("owners %v", count(before))
	for _, h := range f.hosts {
		// arp is a family of its own: gossip and questions are both to suffer.
		h.run("nft add table inet storm; nft add chain inet storm in '{ type filter hook input priority 0; }'; " +
			"nft add rule inet storm in numgen random mod 100 \\< 10 counter drop; " +
			"nft add table arp storm; nft add chain arp storm in '{ type filter hook input priority 0; }'; " +
			"nft add rule arp storm in numgen random mod 100 \\< 10 counter drop")
	}
	busy.Cores(t)
	lasting := 6 * time.Second
	if os.Getenv("QUAYSIDE_SOAK") != "" {
		lasting = 10 * time.Minute
	}
	asked := 0
	for until := time.Now().Add(lasting); time.Now().Before(until); {
		for a, owner := range before {
			asked++
			if got := f.who(a); got != owner && got != "" {
				t.Fatalf("%s moved from %s to %s", a, owner, got)
			}
		}
	}
	for name, h := range f.hosts {
		rules := h.run("nft list ruleset; nft flush ruleset")
		if strings.Count(rules, "counter packets") != 2 || strings.Contains(rules, "counter packets 0 ") {
			t.Errorf("nothing was lost at %s:\n%s", name, rules)
		}
	}
	t.Logf("%d questions in %v", asked, lasting)
	if after := f.owners(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("owners moved from %v to %v", before, after)
	}
}

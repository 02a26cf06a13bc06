package lab

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRuleset(t *testing.T) {
	var f faults
	f.setSilent("node1", true)
	f.setSilent("node2", true)
	f.setSilent("node2", false)
	f.setLoss("node3", 10)
	f.setLoss("node4", 10)
	f.setLoss("node4", 0)
	f.splits = []*split{{from: []string{"node1", "node2"}, to: []string{"api"}}, {from: []string{"a"}, to: []string{"b"}, oneWay: true}}
	gossip := "udp dport 7946"
	f.cuts = []*string{&gossip}
	const want = `table bridge faults
delete table bridge faults
table bridge faults {
 chain forward {
  type filter hook forward priority -300; policy accept;
  iifname "node1" drop
  oifname "node1" drop
  iifname { "node1", "node2" } oifname { "api" } drop
  iifname { "api" } oifname { "node1", "node2" } drop
  iifname { "a" } oifname { "b" } drop
  udp dport 7946 drop
  iifname "node3" numgen random mod 100 < 10 drop
  oifname "node3" numgen random mod 100 < 10 drop
 }
}
`
	if diff := cmp.Diff(want, f.ruleset()); diff != "" {
		t.Errorf("ruleset (-want +got):\n%s", diff)
	}
}

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"quayside.io/test/lab"
)

// wish is a preferredNodeSelectors term for the node with that number.
func wish(weight, node int) string {
	return fmt.Sprintf("{weight: %d, preference: {matchLabels: {quayside.io/lab-node: '%d'}}}", weight, node)
}

// preferring is an L2Advertisement of pool l2 with these terms, and more.
func preferring(more string, terms ...string) string {
	return "{ipAddressPools: [l2], " + more + "preferredNodeSelectors: [" + strings.Join(terms, ", ") + "]}"
}

// Preferences place what nobody holds, and move what is held when they are
// edited. Unlike in MetalLB, a preferred node that returns takes nothing back
// by itself: moving an address cuts its connections.
func TestL2PreferredNodes(t *testing.T) {
	e := big(t)
	e.l2World(l2Ranges)
	e.Pod(1, "web-1", lab.Labels{"app": "web"})
	laptop := e.asker("laptop")
	e.advertise(t, preferring("", wish(10, 2)))
	red := e.dual("red", "Cluster", "team: red")
	var blue []string
	holds := func(here edge, node int, addresses ...string) {
		here.t.Helper()
		for _, address := range addresses {
			here.holder(laptop, address, here.Node(node).Name())
		}
	}
	run := func(row string, f func(here edge)) {
		t.Run("preferred_node.go: "+row, func(t *testing.T) { f(edge{e.With(t), t}) })
	}
	run("prefer, and fall back", func(here edge) {
		holds(here, 2, red...)
		speaker := here.Quayside().Speaker(e.Node(2))
		speaker.Stop()
		away := e.everyNode(e.Node(2).Name())
		blue = e.dual("blue", "Cluster", "team: blue") // made while it is away
		held := map[string]string{}
		for _, address := range append(red, blue...) {
			held[address] = here.holder(laptop, address, away...)
		}
		speaker.Start()
		for address, holder := range held {
			here.stays(laptop, address, holder, 500*time.Millisecond)
		}
	})
	all := append(red, blue...)
	run("edited preferences elect again", func(here edge) {
		e.advertise(here.t, preferring("", wish(10, 5)))
		for _, address := range all {
			silent := 0
			here.Eventually(settle, func() error {
				got := laptop.who(address)
				if len(got) == 0 {
					silent++
				}
				if len(got) != 1 || got[0] != e.Node(5).Name() {
					return fmt.Errorf("%s is answered by %v", address, got)
				}
				return nil
			})
			if silent > 0 {
				here.t.Errorf("%d questions for %s were unanswered while it moved", silent, address)
			}
			here.announced(address, e.Node(5).Name(), "eth0")
		}
	})
	run("no match is no preference", func(here edge) {
		e.advertise(here.t, preferring("", "{weight: 100, preference: {matchLabels: {lab/none: 'yes'}}}"))
		for _, address := range all {
			here.stays(laptop, address, e.Node(5).Name(), 500*time.Millisecond)
		}
		for _, address := range e.dual("green", "Cluster", "team: green") {
			here.holder(laptop, address, e.everyNode()...)
		}
	})
	run("a hard filter and a soft order", func(here edge) {
		e.advertise(here.t, preferring("nodeSelectors: [{matchLabels: {quayside.io/lab-node: '1'}}, {matchLabels: {quayside.io/lab-node: '3'}}], ",
			wish(100, 2), wish(1, 3)))
		holds(here, 3, all...)
	})
	run("weights add up", func(here edge) {
		e.advertise(here.t, preferring("", wish(10, 4), wish(6, 6)), preferring("", wish(5, 6)))
		holds(here, 6, all...)
	})
	run("disjoint preferences", func(here edge) {
		e.advertise(here.t, preferring("serviceSelectors: [{matchLabels: {team: red}}], ", wish(1, 1)),
			preferring("serviceSelectors: [{matchLabels: {team: blue}}], ", wish(1, 7)))
		holds(here, 1, red...)
		holds(here, 7, blue...)
	})
	run("scoped by serviceSelectors", func(here edge) {
		e.advertise(here.t, "{ipAddressPools: [l2]}", preferring("serviceSelectors: [{matchLabels: {team: red}}], ", wish(1, 3)))
		holds(here, 3, red...)
		for _, address := range blue {
			here.stays(laptop, address, e.Node(7).Name(), 500*time.Millisecond)
		}
	})
	// Last, since it ends where the first began.
	run("fail over, and come back when told to", func(here edge) {
		speaker := here.Quayside().Speaker(e.Node(3))
		speaker.Kill()
		held := map[string]string{}
		for _, address := range red {
			held[address] = here.holder(laptop, address, e.everyNode(e.Node(3).Name())...)
		}
		speaker.Start()
		for address, holder := range held {
			here.stays(laptop, address, holder, 500*time.Millisecond)
		}
		e.advertise(here.t, "{ipAddressPools: [l2]}", preferring("serviceSelectors: [{matchLabels: {team: red}}], ", wish(2, 3)))
		holds(here, 3, red...)
	})
}

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"quayside.io/test/lab"
)

// preference is a preferredNodeSelectors term for the node with that number.
func preference(weight, node int) string {
	return fmt.Sprintf("{weight: %d, preference: {matchLabels: {quayside.io/lab-node: '%d'}}}", weight, node)
}

// preferring is an L2Advertisement of pool l2 with these terms, and more.
func preferring(more string, terms ...string) string {
	return "{ipAddressPools: [l2], " + more + "preferredNodeSelectors: [" + strings.Join(terms, ", ") + "]}"
}

// preferences are two Services with an address of each family, for the terms
// of whose advertisements the test tries one after the other.
type preferences struct {
	edge
	laptop    asker
	red, blue []string
}

// Preferences place what nobody holds, and move what is held when they are
// edited. Unlike in MetalLB, a preferred node that returns takes nothing back
// by itself: moving an address cuts its connections.
func TestL2PreferredNodes(t *testing.T) {
	inPairs(t)
	e := big(t)
	e.l2World(l2Ranges)
	e.Pod(1, "web-1", lab.Labels{"app": "web"})
	p := &preferences{edge: e, laptop: e.asker("laptop")}
	e.advertise(t, preferring("", preference(10, 2)))
	p.red = e.dual("red", "Cluster", "team: red")
	run := func(row string, f func(here edge)) {
		t.Run("preferred_node.go: "+row, func(t *testing.T) { f(edge{e.With(t), t}) })
	}
	run("prefer, and fall back", p.fallsBack)
	run("edited preferences elect again", p.electsAgain)
	run("no match is no preference", p.matchesNone)
	run("a hard filter and a soft order", func(here edge) {
		e.advertise(here.t, preferring("nodeSelectors: [{matchLabels: {quayside.io/lab-node: '1'}}, {matchLabels: {quayside.io/lab-node: '3'}}], ",
			preference(100, 2), preference(1, 3)))
		p.holds(here, 3, p.all()...)
	})
	run("weights add up", func(here edge) {
		e.advertise(here.t, preferring("", preference(10, 4), preference(6, 2)), preferring("", preference(5, 2)))
		p.holds(here, 2, p.all()...)
	})
	run("disjoint preferences", func(here edge) {
		e.advertise(here.t, preferring("serviceSelectors: [{matchLabels: {team: red}}], ", preference(1, 1)),
			preferring("serviceSelectors: [{matchLabels: {team: blue}}], ", preference(1, 5)))
		p.holds(here, 1, p.red...)
		p.holds(here, 5, p.blue...)
	})
	run("scoped by serviceSelectors", func(here edge) {
		e.advertise(here.t, "{ipAddressPools: [l2]}", preferring("serviceSelectors: [{matchLabels: {team: red}}], ", preference(1, 3)))
		p.holds(here, 3, p.red...)
		p.stayWith(here, 5, p.blue...)
	})
	run("fail over, and come back when told to", p.comesBack) // where the last one ended
}

func (p *preferences) all() []string { return slices.Concat(p.red, p.blue) }

func (p *preferences) holds(here edge, node int, addresses ...string) {
	here.t.Helper()
	for _, address := range addresses {
		here.holder(p.laptop, address, here.Node(node).Name())
	}
}

// stayWith is holds, for half a second.
func (p *preferences) stayWith(here edge, node int, addresses ...string) {
	here.t.Helper()
	held := map[string]string{}
	for _, address := range addresses {
		held[address] = here.Node(node).Name()
	}
	here.stay(p.laptop, held, 500*time.Millisecond)
}

func (p *preferences) fallsBack(here edge) {
	p.holds(here, 2, p.red...)
	speaker := here.Quayside().Speaker(p.Node(2))
	speaker.Stop()
	away := p.everyNode(p.Node(2).Name())
	p.blue = p.dual("blue", "Cluster", "team: blue") // made while it is away
	held := map[string]string{}
	for _, address := range p.all() {
		held[address] = here.holder(p.laptop, address, away...)
	}
	speaker.Start()
	here.stay(p.laptop, held, 500*time.Millisecond)
}

func (p *preferences) electsAgain(here edge) {
	p.advertise(here.t, preferring("", preference(10, 5)))
	for _, address := range p.all() {
		silent := 0
		here.Eventually(settle, func() error {
			got := p.laptop.AllAnswers(address, 1, 60*time.Millisecond)
			if len(got) == 0 {
				silent++
			}
			if !maps.Equal(got, map[string]int{p.Node(5).MAC(): 1}) {
				return fmt.Errorf("%s is answered by %v", address, got)
			}
			return nil
		})
		if silent > 0 {
			here.t.Errorf("%d questions for %s were unanswered while it moved", silent, address)
		}
		here.announced(address, p.Node(5).Name(), "eth0")
	}
}

func (p *preferences) matchesNone(here edge) {
	p.advertise(here.t, preferring("", "{weight: 100, preference: {matchLabels: {lab/none: 'yes'}}}"))
	p.stayWith(here, 5, p.all()...)
	for _, address := range p.dual("green", "Cluster", "team: green") {
		here.holder(p.laptop, address, p.everyNode()...)
	}
}

func (p *preferences) comesBack(here edge) {
	speaker := here.Quayside().Speaker(p.Node(3))
	speaker.Kill()
	held := map[string]string{}
	for _, address := range p.red {
		held[address] = here.holder(p.laptop, address, p.everyNode(p.Node(3).Name())...)
	}
	speaker.Start()
	here.stay(p.laptop, held, 500*time.Millisecond)
	p.advertise(here.t, "{ipAddressPools: [l2]}", preferring("serviceSelectors: [{matchLabels: {team: red}}], ", preference(2, 3)))
	p.holds(here, 3, p.red...)
}

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"quayside.io/test/lab"
)

// onTheWire is what one finds on two LANs once some L2Advertisements are there
// for a Service with an address of each family.
type onTheWire struct {
	row     string   // see l2Rows
	adverts []string // their specs
	// Nodes one of which answers on the LAN, by its eth0, and on the second
	// one, by its eth1. None: nobody does.
	lan, second []int
	told        string // what the Service hears, in an Event at least the reason
}

// advertisements of a Service labelled team=red, zone=a.
func advertisements() []onTheWire {
	all := []int{1, 2, 3, 4, 5}
	return []onTheWire{{
		row:     "interface_selector.go: the load balancer's MAC is that of the interface",
		adverts: []string{"{ipAddressPools: [l2], interfaces: [eth0]}"},
		lan:     all,
	}, {
		row:     "interface_selector.go: the interface is changed",
		adverts: []string{"{ipAddressPools: [l2], interfaces: [eth1]}"},
		second:  all,
	}, {
		row:     "interface_selector.go: two advertisements, both interfaces",
		adverts: []string{"{ipAddressPools: [l2], interfaces: [eth0]}", "{ipAddressPools: [l2], interfaces: [eth1]}"},
		lan:     all, second: all,
	}, {
		row:     "interface_selector.go: an interface that no node has",
		adverts: []string{"{ipAddressPools: [l2], interfaces: [eth9]}"},
		told:    "NoEligibleNode: no node can announce ADDRESS: node1: it has no interface eth9",
	}, {
		row:     "interface_selector.go: with a node selector",
		adverts: []string{"{ipAddressPools: [l2], interfaces: [eth1], nodeSelectors: [{matchLabels: {quayside.io/lab-node: '4'}}]}"},
		second:  []int{4},
	}, {
		row: "interface_selector.go: two advertisements, each for a node of its own",
		adverts: []string{
			"{ipAddressPools: [l2], interfaces: [eth0], nodeSelectors: [{matchLabels: {quayside.io/lab-node: '5'}}]}",
			"{ipAddressPools: [l2], interfaces: [eth9], nodeSelectors: [{matchLabels: {quayside.io/lab-node: '4'}}]}",
		},
		lan: []int{5},
	}, {
		row:     "interface_selector.go: none named, so the one with the subnet",
		adverts: []string{"{ipAddressPools: [l2]}"},
		lan:     all,
	}, {
		row:     "node_selector.go: one node",
		adverts: []string{"{ipAddressPools: [l2], nodeSelectors: [{matchLabels: {quayside.io/lab-node: '3'}}]}"},
		lan:     []int{3},
	}, {
		row:     "node_selector.go: several selectors add up",
		adverts: []string{"{ipAddressPools: [l2], nodeSelectors: [{matchLabels: {quayside.io/lab-node: '1'}}, {matchExpressions: [{key: quayside.io/lab-node, operator: In, values: ['2', '4']}]}]}"},
		lan:     []int{1, 2, 4},
	}, {
		row:     "node_selector.go: no node matches",
		adverts: []string{"{ipAddressPools: [l2], nodeSelectors: [{matchLabels: {quayside.io/lab-node: none}}]}"},
		told:    "NoEligibleNode: no node can announce ADDRESS: node1: no advertisement selects it",
	}, {
		row:     "service_selector.go: pool and Service selectors",
		adverts: []string{"{ipAddressPoolSelectors: [{matchLabels: {kind: l2}}], serviceSelectors: [{matchLabels: {team: red, zone: a}}]}"},
		lan:     all,
	}, {
		row:     "service_selector.go: none matches",
		adverts: []string{"{ipAddressPools: [l2], serviceSelectors: [{matchLabels: {team: red, zone: b}}]}"},
		told:    `NotAdvertised: ADDRESS is not announced: no advertisement of pool "l2" has a service selector that matches`,
	}, {
		row:     "service_selector.go: one of several matches",
		adverts: []string{"{ipAddressPools: [l2], serviceSelectors: [{matchLabels: {team: blue}}, {matchLabels: {zone: a}}]}"},
		lan:     all,
	}, {
		row: "service_selector.go: exactly one node",
		adverts: []string{
			"{ipAddressPools: [l2], nodeSelectors: [{matchLabels: {quayside.io/lab-node: '2'}}], serviceSelectors: [{matchLabels: {team: red}}]}",
			"{ipAddressPools: [l2], nodeSelectors: [{matchLabels: {quayside.io/lab-node: '5'}}], serviceSelectors: [{matchLabels: {team: blue}}]}",
		},
		lan: []int{2},
	}}
}

// An L2Advertisement goes in; who answers for the Service's addresses on which
// LAN, with which MAC, and what the SpeakerStatuses say of it, comes out.
func TestL2Advertisements(t *testing.T) {
	beside(t)
	e := big(t)
	e.l2World(l2Ranges)
	e.Pod(1, "web-1", lab.Labels{"app": "web"})
	cable := e.SecondLAN()
	laptop, printer := e.asker("laptop"), asker{cable.Client("printer"), cable.MAC, e.Nodes()}
	addresses := e.dual("web", "Cluster", "team: red, zone: a")
	for _, c := range advertisements() {
		t.Run(c.row, func(t *testing.T) {
			here := edge{e.With(t), t}
			e.advertise(t, c.adverts...)
			for _, address := range addresses {
				here.finds(c, laptop, printer, address)
			}
			if c.told != "" {
				reason, _, _ := strings.Cut(c.told, ":")
				here.inState("Service "+e.Namespace()+"/web", strings.Replace(c.told, "ADDRESS", addresses[0], 1))
				here.told("Service", "web", reason)
			}
		})
	}
}

func (e edge) finds(c onTheWire, laptop, printer asker, address string) {
	e.t.Helper()
	var interfaces []string
	holder := e.holder(laptop, address, e.numbered(c.lan)...)
	if holder != "" {
		interfaces = append(interfaces, "eth0")
	}
	second := e.holder(printer, address, e.numbered(c.second)...)
	if second != "" {
		interfaces = append(interfaces, "eth1")
	}
	if holder != "" && second != "" && holder != second {
		e.t.Errorf("%s is answered by %s on one LAN and by %s on the other", address, holder, second)
	}
	if holder == "" {
		holder = second
	}
	e.announced(address, holder, interfaces...)
}

func (e edge) numbered(numbers []int) (names []string) {
	for _, n := range numbers {
		names = append(names, e.Node(n).Name())
	}
	return names
}

// Where no advertisement names interfaces, each LAN hears of the addresses of
// its own subnet, from the interface in it, and can use them.
func TestL2EachInterfaceForItsSubnet(t *testing.T) {
	beside(t)
	e := big(t)
	e.Pod(1, "web-1", lab.Labels{"app": "web"})
	cable := e.SecondLAN()
	laptop, printer := e.asker("laptop"), asker{cable.Client("printer"), cable.MAC, e.Nodes()}
	for _, n := range e.Nodes() {
		n.Exec("ip", "addr", "add", cable.IP(n), "dev", "eth1")
		n.Exec("ip", "addr", "add", cable.IPv6(n), "dev", "eth1", "nodad")
	}
	e.l2World(`10.79.0.200-10.79.0.201, "fd79::200-fd79::201"`)
	e.advertise(t, "{ipAddressPools: [l2]}")
	for _, address := range e.dual("web", "Cluster", "team: red") {
		holder := e.holder(printer, address, e.everyNode()...)
		e.announced(address, holder, "eth1")
		if got := laptop.who(address); len(got) > 0 {
			t.Errorf("%v answer for %s on the LAN, which it does not belong to", got, address)
		}
		e.servedAt(printer.Client, address)
		// A cable that is pulled is a cause to move.
		e.nodeNamed(holder).Exec("ip", "link", "set", "eth1", "down")
		e.announced(address, e.holder(printer, address, e.everyNode(holder)...), "eth1")
		e.nodeNamed(holder).Exec("ip", "link", "set", "eth1", "up")
	}
}

// More nodes are selected, then fewer: the address stays while its node may
// hold it, and moves without an unanswered question when it may not.
func TestL2NodeSelectorChanges(t *testing.T) {
	beside(t)
	e := big(t)
	e.l2World(l2Ranges)
	e.Pod(1, "web-1", lab.Labels{"app": "web"})
	laptop := e.asker("laptop")
	for n := range 2 {
		e.mark(e.Node(n+1).Name(), "lab/l2", "yes")
	}
	e.advertise(t, "{ipAddressPools: [l2], nodeSelectors: [{matchLabels: {lab/l2: 'yes'}}]}")
	for _, address := range e.dual("web", "Cluster", "team: red") {
		first := e.holder(laptop, address, e.numbered([]int{1, 2})...)
		for n := 3; n <= len(e.Nodes()); n++ { // nodes are added
			e.mark(e.Node(n).Name(), "lab/l2", "yes")
		}
		e.stays(laptop, address, first, time.Second)
		e.labelNode(first, "lab/l2", "") // and the holder is taken out
		next := e.holder(laptop, address, e.everyNode(first)...)
		e.announced(address, next, "eth0")
		e.labelNode(first, "lab/l2", "yes") // it returns, and takes nothing
		e.stays(laptop, address, next, time.Second)
		for n := 3; n <= len(e.Nodes()); n++ {
			e.labelNode(e.Node(n).Name(), "lab/l2", "")
		}
		e.labelNode(first, "lab/l2", "yes")
	}
}

// Several node selectors and policy Local: only where both allow it.
func TestL2NodeSelectorsAndLocalPolicy(t *testing.T) {
	beside(t)
	e := big(t)
	e.l2World(l2Ranges)
	laptop := e.asker("laptop")
	pods := map[int]*lab.Pod{}
	for _, n := range []int{2, 3, 4} {
		pods[n] = e.Pod(n, fmt.Sprintf("web-%d", n), lab.Labels{"app": "web"})
	}
	e.advertise(t, "{ipAddressPools: [l2], nodeSelectors: [{matchLabels: {quayside.io/lab-node: '1'}}, {matchLabels: {quayside.io/lab-node: '2'}}, {matchLabels: {quayside.io/lab-node: '3'}}]}")
	addresses := e.dual("web", "Local", "team: red")
	for _, address := range addresses {
		holder := e.holder(laptop, address, e.numbered([]int{2, 3})...)
		if got := e.servedAt(laptop.Client, address); got != holder {
			t.Errorf("%s holds %s and a pod on %s serves it", holder, address, got)
		}
	}
	pods[2].SetReady(false)
	for _, address := range addresses {
		e.holder(laptop, address, e.Node(3).Name())
	}
}

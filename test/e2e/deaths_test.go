package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"quayside.io/test/lab"
)

// The holder of an address dies in three ways, and returns: the address moves
// once, a new client finds it, and the return moves nothing, so that a
// connection that was opened meanwhile stays open.
func TestDeaths(t *testing.T) {
	t.Run("three nodes", func(t *testing.T) {
		e := quayside(t, "nftables")
		e.podOnEachNode()
		e.Apply(loadBalancer("Local"))
		e.deaths(t, e.serviceAddress("web"))
	})
	t.Run("seven nodes", func(t *testing.T) {
		e := big(t)
		for i, address := range e.dualStack() {
			t.Run([]string{"IPv4", "IPv6"}[i], func(t *testing.T) { e.under(t).deaths(t, address) })
		}
	})
}

func (e edge) deaths(t *testing.T, address string) {
	for _, d := range []struct {
		name         string
		strike, mend func(e edge, n *lab.Node)
	}{
		{"silence", func(_ edge, n *lab.Node) { n.Fail() }, func(_ edge, n *lab.Node) { n.Heal() }},
		{"carrier", func(_ edge, n *lab.Node) { n.CarrierDown() }, func(_ edge, n *lab.Node) { n.Heal() }},
		// Held down: one that its kubelet starts at once may be back before anybody missed it.
		{"killed", func(e edge, n *lab.Node) { e.Quayside().Speaker(n).Kill() }, func(e edge, n *lab.Node) { e.Quayside().Speaker(n).Start() }},
	} {
		t.Run(d.name, func(t *testing.T) {
			e := e.under(t)
			laptop, visitor := e.asker("laptop"), e.Client("visitor")
			target := net.JoinHostPort(address, "80")
			holder := e.nodeNamed(e.servedAt(laptop.Client, address))
			e.Eventually(settle, func() error { return e.agree(address, holder.Name()) })
			probe := visitor.ProbeAfresh(target, 10*time.Millisecond, 300*time.Millisecond)
			d.strike(e, holder)
			var successor *lab.Node
			e.Eventually(settle, func() error {
				if successor = e.nodeNamed(e.servedAt(laptop.Client, address)); successor.Name() == holder.Name() {
					return fmt.Errorf("%s is still served by %s", address, holder.Name())
				}
				return nil
			})
			stream := openStream(t, laptop.Client, target)
			if stream.node != successor.Name() {
				t.Errorf("%s serves %s, and %s a moment ago", stream.node, address, successor.Name())
			}
			time.Sleep(300 * time.Millisecond) // the visitor finds it as well
			report := probe.Stop()
			t.Logf("%s of %s: %s took over: %s", d.name, holder.Name(), successor.Name(), report)
			if last := report.Attempts[len(report.Attempts)-1]; last.Err != nil {
				t.Errorf("a new client does not find %s: %v", address, last.Err)
			}

			d.mend(e, holder)
			e.Eventually(settle, func() error { return e.agree(address, successor.Name()) })
			e.stays(laptop, address, successor.Name(), time.Second)
			if err := stream.close(); err != nil {
				t.Errorf("the return of %s broke a connection to %s: %v", holder.Name(), successor.Name(), err)
			}
		})
	}
}

// under is the same cluster for a test within e's own.
func (e edge) under(t *testing.T) edge { return edge{e.With(t), t} }

// podOnEachNode starts pods web-1 and so on. Behind a Service of policy Local,
// whoever holds its address answers by its own pod, and no connection is lost
// behind the address with another node.
func (e edge) podOnEachNode() {
	e.t.Helper()
	for n := range e.Nodes() {
		e.Pod(n+1, fmt.Sprintf("web-%d", n+1), lab.Labels{"app": "web"})
	}
}

// dualStack makes Service web of policy Local with a pod on each node, and
// returns its addresses: IPv4, IPv6.
func (e edge) dualStack() []string {
	e.t.Helper()
	e.podOnEachNode()
	e.Apply(loadBalancer("Local") + "  ipFamilyPolicy: RequireDualStack\n")
	return e.bothAddresses("web")
}

// servedAt asks until a pod answers at address, and returns its node.
func (e edge) servedAt(from *lab.Client, address string) (node string) {
	e.t.Helper()
	e.Eventually(settle, func() error {
		resp, err := from.Try("http://"+net.JoinHostPort(address, "80"), lab.Timeout(time.Second))
		if err != nil {
			return err
		}
		reply, err := resp.Reply()
		node = reply.Node
		return err
	})
	return node
}

// agree returns nil when every speaker sees every other, and owner hold address.
func (e edge) agree(address, owner string) error { return agree(e.Cluster, address, owner) }

func agree(c *lab.Cluster, address, owner string) error {
	for _, speaker := range c.Quayside().Speakers() {
		var s struct {
			Alive  []string
			Owners map[string]string
		}
		if err := json.Unmarshal([]byte(speaker.Admin("/state")), &s); err != nil {
			return err
		}
		if len(s.Alive) != len(c.Nodes()) || s.Owners[address] != owner {
			return fmt.Errorf("the speaker of %s sees %v alive and %s the owner of %s, not %s",
				speaker.Node(), s.Alive, s.Owners[address], address, owner)
		}
	}
	return nil
}

// A cable is out for a moment. Its node asks the LAN, hears nobody, and answers
// again; or another one has heard that the link is down and answers. One does.
func TestALinkFlaps(t *testing.T) {
	e := quayside(t, "nftables")
	e.podOnEachNode()
	e.Apply(loadBalancer("Local"))
	address, laptop := e.serviceAddress("web"), e.asker("laptop")
	holder := e.nodeNamed(e.servedAt(laptop.Client, address))
	e.Eventually(settle, func() error { return e.agree(address, holder.Name()) })
	stream := openStream(t, laptop.Client, net.JoinHostPort(address, "80"))
	speaker := e.Quayside().Speaker(holder)
	before := strings.Count(speaker.Log(), `"cause":"returned"`)
	holder.CarrierDown()
	time.Sleep(20 * time.Millisecond)
	holder.Heal()
	now := e.owner(laptop.Client, address).Name()
	e.Eventually(settle, func() error { return e.agree(address, now) })
	e.stays(laptop, address, now, time.Second)
	switch err := stream.close(); {
	case now != holder.Name():
		t.Logf("%s heard that the link of %s is down, and has %s", now, holder.Name(), address)
	case err != nil:
		t.Errorf("a connection did not survive: %v", err)
	case strings.Count(speaker.Log(), `"cause":"returned"`) != before+1:
		t.Errorf("%s answers again and does not say that it asked", holder.Name())
	}
}

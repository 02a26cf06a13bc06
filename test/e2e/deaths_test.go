package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"quayside.io/test/busy"
	"quayside.io/test/lab"
)

// The holder of an address dies in three ways, and returns: the address moves
// once, within a second, a new client finds it, and the return moves nothing, so
// that a connection that was opened meanwhile stays open.
func TestDeaths(t *testing.T) {
	onEach(t, map[string]func(*testing.T) edge{"three nodes": three, "five nodes": big}, func(t *testing.T, e edge) {
		for i, address := range e.dualStack() {
			t.Run([]string{"IPv4", "IPv6"}[i], func(t *testing.T) { e.under(t).deaths(t, address) })
		}
	})
}

func (e edge) deaths(t *testing.T, address string) {
	// One that is cut off for so short a time that it does not miss anybody goes on
	// with its first announcements, as a link that loses frames asks for.
	time.Sleep(3 * time.Second)
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
			e.announced(address, holder.Name(), "eth0") // the others have heard of the claim, too
			probe := visitor.ProbeAfresh(target, 10*time.Millisecond, 300*time.Millisecond)
			measured, measuredFor := e.failovers(holder)
			struck, standstill := time.Now(), busy.Standstill(t)
			d.strike(e, holder)
			var successor *lab.Node
			e.Eventually(settle, func() error {
				if successor = e.nodeNamed(e.servedAt(laptop.Client, address)); successor.Name() == holder.Name() {
					return fmt.Errorf("%s is still served by %s", address, holder.Name())
				}
				return nil
			})
			found := time.Since(struck)
			stream := openStream(t, laptop.Client, target)
			if stream.node != successor.Name() {
				t.Errorf("%s serves %s, and %s a moment ago", stream.node, address, successor.Name())
			}
			time.Sleep(300 * time.Millisecond) // the visitor finds it as well
			report, late := probe.Stop(), standstill()
			t.Logf("%s of %s: %s took over: %s; the machine stood still for %v", d.name, holder.Name(), successor.Name(), report, late.Round(time.Millisecond))
			if report.Gap-late > time.Second {
				t.Errorf("nobody answered for %v", report.Gap)
			}
			if last := report.Attempts[len(report.Attempts)-1]; last.Err != nil {
				t.Errorf("a new client does not find %s: %v", address, last.Err)
			}
			// It had been seen a round of probes before it died.
			takeovers, seconds := e.failovers(holder)
			each := time.Duration((seconds - measuredFor) / (takeovers - measured) * float64(time.Second))
			if takeovers == measured || each <= 0 || each > found+time.Second {
				t.Errorf("%v takeovers are measured, %v each; the client waited %v", takeovers-measured, each, found)
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

// failovers are how many addresses of dead nodes the speakers have taken, but
// that of one node, and how long they say that it took, in seconds.
func (e edge) failovers(but *lab.Node) (n, seconds float64) {
	e.t.Helper()
	for _, s := range e.Quayside().Speakers() {
		if s.Node() != but.Name() {
			page := s.Admin("/metrics")
			n += sample(e.t, page, "quayside_failover_seconds_count")
			seconds += sample(e.t, page, "quayside_failover_seconds_sum")
		}
	}
	return n, seconds
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
	speaker, now := e.Quayside().Speaker(holder), ""
	// The kernel tells of a link late, and the speaker looks at its links ten times a
	// second at most: one that is up again by then was never down.
	e.Eventually(settle, func() error {
		holder.CarrierDown()
		time.Sleep(20 * time.Millisecond)
		holder.Heal()
		now = e.owner(laptop.Client, address).Name()
		if now == holder.Name() && !hasReturned(speaker.Log(), address) {
			return fmt.Errorf("%s answers again and does not say that it asked", now)
		}
		return nil
	})
	e.Eventually(settle, func() error { return e.agree(address, now) })
	e.stays(laptop, address, now, time.Second)
	if err := stream.close(); now != holder.Name() {
		t.Logf("%s heard that the link of %s is down, and has %s", now, holder.Name(), address)
	} else if err != nil {
		t.Errorf("a connection did not survive: %v", err)
	}
}

// hasReturned reports whether a speaker says that it asked for address before it
// answered again.
func hasReturned(log, address string) bool {
	for line := range strings.Lines(log) {
		if strings.Contains(line, fmt.Sprintf("%q:%q", "address", address)) && strings.Contains(line, `"cause":"returned"`) {
			return true
		}
	}
	return false
}

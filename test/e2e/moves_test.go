package e2e

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"quayside.io/test/lab"
)

// handshake is how long a new connection may take. The kernel sends a packet of the
// handshake again after a second, for which one of them may have to wait: see cuts.
const handshake = 2500 * time.Millisecond

// watchMoves opens a new connection to address each 10 ms, until the returned
// function judges: no new connection may have failed. One that is open at the
// very moment of a move may be cut, and the moves, so the moments, are counted.
func (e edge) watchMoves(from *lab.Client, address string) (judge func(what string, moves int)) {
	e.t.Helper()
	target := net.JoinHostPort(address, "80")
	probe := from.Probe(target, 10*time.Millisecond, handshake)
	// Somebody new to the LAN is answered by whoever owns the address by then.
	visitor := e.Client("visitor").ProbeAfresh(target, 100*time.Millisecond, time.Second)
	return func(what string, moves int) {
		e.t.Helper()
		time.Sleep(time.Second) // connections go on after the last move
		e.judge(what+": one who knows the owner", probe, moves)
		e.judge(what+": one new to the LAN", visitor, moves)
	}
}

// judge stops a prober and says what it found.
func (e edge) judge(what string, p *lab.Prober, moves int) {
	e.t.Helper()
	report := p.Stop()
	e.t.Logf("%s: %s", what, report)
	if moments := e.cuts(report); len(moments) > moves {
		e.t.Errorf("%s: connections were cut at %d moments, more than %d moves: %s", what, len(moments), moves, strings.Join(moments, " "))
	}
}

// handover is how long who had an address and who takes it both answer, at most: some 20 ms,
// 100 where the processors are busy. Who asks in that time may be cut, too.
const handover = 250 * time.Millisecond

// cuts fails the test where a new connection failed, and returns the moments at which open
// ones were cut. Those that are cut by one move overlap, or begin while the address is handed
// over. One of tens of thousands loses a packet in a lab whose processors are busy, far from
// any move: it waits until the kernel sends that again, and is let pass. An outage of 20 ms
// makes two wait.
func (e edge) cuts(report lab.Report) (moments []string) {
	e.t.Helper()
	var until time.Time
	waited := 0
	for _, a := range report.Attempts {
		switch {
		case a.Err == nil && a.Took < time.Second:
		case a.Err == nil:
			waited++
		case a.Cut():
			if a.Start.After(until.Add(handover)) {
				moments = append(moments, clock(a.Start))
			}
			if end := a.Start.Add(a.Took); end.After(until) {
				until = end
			}
		default:
			e.t.Errorf("%s: a new connection failed: %v", clock(a.Start), a.Err)
		}
	}
	if waited > 1 {
		e.t.Errorf("%d new connections took a second and more: their packets were lost", waited)
	}
	return moments
}

// clock is a time as the pods' logs have it.
func clock(at time.Time) string { return at.UTC().Format("15:04:05.000") }

// All speakers are restarted, one after the other, as a DaemonSet's update
// does: at five nodes, for both families.
func TestRollingRestartOfTheSpeakers(t *testing.T) {
	inPairs(t)
	e := big(t)
	laptop := e.Client("laptop")
	var judges []func(string, int)
	addresses := e.dualStack()
	for _, address := range addresses {
		owner := e.servedAt(laptop, address)
		e.Eventually(settle, func() error { return e.agree(address, owner) })
		judges = append(judges, e.watchMoves(laptop, address))
	}
	began := time.Now()
	for _, speaker := range e.Quayside().Speakers() {
		speaker.Stop()
		speaker.Start()
	}
	for i, judge := range judges {
		judge(fmt.Sprintf("%s, %d restarts in %v", addresses[i], len(e.Nodes()), time.Since(began).Round(time.Millisecond)), len(e.Nodes()))
	}
}

// The node that holds an address of a Service of policy Local is drained. Its
// endpoint ends, serving to the last, and the address is elsewhere by then.
func TestDrainMovesALocalAddress(t *testing.T) {
	inPairs(t)
	t.Run("three nodes", func(t *testing.T) {
		t.Parallel()
		e := quayside(t, "nftables")
		e.lingeringPods()
		e.Apply(loadBalancer("Local"))
		e.drainOwner(e.serviceAddress("web"))
	})
	t.Run("five nodes", func(t *testing.T) {
		t.Parallel()
		e := big(t)
		e.lingeringPods()
		e.Apply(loadBalancer("Local") + "  ipFamilyPolicy: RequireDualStack\n")
		for _, address := range e.bothAddresses("web") {
			e.drainOwner(address)
		}
	})
}

// With --hand-over-on-cordon the address of any Service leaves a node that is
// drained, before the node is shut down.
func TestDrainMovesEveryAddress(t *testing.T) {
	inPairs(t)
	e := edge{bare(t), t}
	e.Install(lab.Values{"speaker": lab.Values{"handOverOnCordon": true}})
	e.Apply(lanPool + `---
apiVersion: quayside.io/v1alpha1
kind: L2Advertisement
metadata: {name: lan}
spec: {ipAddressPools: [lan]}
`)
	e.lingeringPods()
	e.cordonLeavesRouters()
	e.Apply(loadBalancer("Cluster"))
	e.drainOwner(e.serviceAddress("web"))
}

// cordonLeavesRouters cordons a node: routers go elsewhere, the session stays, and
// when the node is uncordoned they come back.
func (e edge) cordonLeavesRouters() {
	e.t.Helper()
	r := rack{edge: e, router: e.bgpRouter("tor", 65001)}
	e.Apply(bgpPool + bgpPeer(r.router, "tor", 65001, "") + bgpService("far", "Cluster"))
	far, node := e.serviceAddress("far"), e.Node(2)
	r.learns(far, e.hops()...)
	before := e.neighbours(r.router)[node.IP()]
	node.Cordon()
	r.learns(far, e.hops(e.Node(1), e.Node(3))...)
	node.Uncordon()
	r.learns(far, e.hops()...)
	if now := e.neighbours(r.router)[node.IP()]; now.State != "Established" || now.Dropped != before.Dropped {
		e.t.Errorf("the session of a node that was cordoned: %+v, was %+v", now, before)
	}
}

// lingeringPods are pods on each node that leave as they should.
func (e edge) lingeringPods() {
	e.t.Helper()
	for n := range e.Nodes() {
		e.Pod(n+1, fmt.Sprintf("web-%d", n+1), lab.Labels{"app": "web"}, lab.Lingers(2*time.Second))
	}
}

// drainOwner drains the node that holds a Service's address: the address moves,
// nobody notices, and the node gets nothing back when it is uncordoned.
func (e edge) drainOwner(address string) {
	e.t.Helper()
	laptop := e.Client("laptop")
	e.servedAt(laptop, address)
	holder := e.owner(laptop, address)
	judge := e.watchMoves(laptop, address)
	holder.Drain()
	var successor *lab.Node
	e.Eventually(settle, func() error {
		if successor = e.owner(laptop, address); successor.Name() == holder.Name() {
			return fmt.Errorf("%s is drained and still holds %s", holder.Name(), address)
		}
		return nil
	})
	holder.Uncordon()
	judge(fmt.Sprintf("drain of %s, which held %s", holder.Name(), address), 1)
	if now := e.owner(laptop, address); now.Name() != successor.Name() {
		e.t.Errorf("%s was uncordoned and took %s from %s", now.Name(), address, successor.Name())
	}
}

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/test/lab"
)

// A speaker is killed and comes back. With graceful restart the router keeps the
// only way to the Service, and no new connection fails; without it the way is
// gone for as long.
func TestBGPGracefulRestart(t *testing.T) {
	inPairs(t)
	e := three(t)
	e.Pod(1, "web-1", lab.Labels{"app": "web"})
	r := newRack(e, ", enableGracefulRestart: true")
	e.Apply(bgpService("near", "Local"))
	near, home := e.serviceAddress("near"), e.hops(e.Node(1))
	speaker := e.Quayside().Speaker(e.Node(1))
	stale := func(want bool) func() error {
		return func() error {
			paths, err := bgpPaths(r.router, near)
			if err == nil && (len(paths) != 1 || paths[0].Stale != want) {
				err = fmt.Errorf("%s by %+v, want one way, stale: %v", near, paths, want)
			}
			return err
		}
	}

	r.learns(near, home...)
	r.serves(near)
	judge := r.watch(near)
	speaker.Kill()
	e.Eventually(settle, stale(true)) // the session is gone, the route is not
	speaker.Start()
	e.Eventually(settle, stale(false))
	judge("with graceful restart", 0)

	before := e.neighbours(r.router)[home[0]]
	if err := e.TryApply(bgpPeer(r.router, "tor", 65001, ", enableGracefulRestart: false")); err != nil {
		t.Fatal(err)
	}
	e.Eventually(settle, func() error { // other settings are another session
		if n := e.neighbours(r.router)[home[0]]; n.State != "Established" || n.Dropped == before.Dropped {
			return fmt.Errorf("the session was %+v, is %+v", before, n)
		}
		return nil
	})
	r.learns(near, home...)
	r.serves(near)
	probe := r.laptop.Probe(near+":80", 10*time.Millisecond, time.Second)
	speaker.Kill()
	r.learns(near)
	speaker.Start()
	r.learns(near, home...)
	time.Sleep(100 * time.Millisecond)
	report := probe.Stop()
	t.Logf("without: %s", report)
	if report.Failed == 0 {
		t.Error("no connection failed without graceful restart: this test sees nothing")
	}
}

// All speakers are restarted, one after the other, without graceful restart: the
// router is asked to go elsewhere before a way is withdrawn. No new connection
// fails, whatever the policy.
func TestBGPRollingRestartOfTheSpeakers(t *testing.T) {
	inPairs(t)
	e := three(t)
	for n := 1; n <= 2; n++ {
		e.Pod(n, fmt.Sprintf("web-%d", n), lab.Labels{"app": "web"})
	}
	r := newRack(e, "")
	e.Apply(bgpService("far", "Cluster") + bgpService("near", "Local"))
	far, near := e.serviceAddress("far"), e.serviceAddress("near")
	r.learns(far, e.hops()...)
	r.learns(near, e.hops(e.Node(1), e.Node(2))...)
	r.serves(far)
	r.serves(near)

	judgeFar, judgeNear := r.watch(far), r.watch(near)
	for _, speaker := range e.Quayside().Speakers() {
		speaker.Stop()
		speaker.Start()
		r.learns(far, e.hops()...)
		r.learns(near, e.hops(e.Node(1), e.Node(2))...)
	}
	// Each time a way goes and comes back the router spreads anew.
	judgeFar("restarts, Cluster", 2*len(e.Nodes()))
	judgeNear("restarts, Local", 2*len(e.Nodes()))
}

// The pods of a Local Service are replaced, one after the other, each by one on
// another node: no new connection fails.
func TestBGPRolloutOfALocalService(t *testing.T) {
	inPairs(t)
	e := three(t)
	pods := []*lab.Pod{
		e.Pod(1, "old-1", lab.Labels{"app": "web"}, lab.Lingers(2*time.Second)),
		e.Pod(2, "old-2", lab.Labels{"app": "web"}, lab.Lingers(2*time.Second)),
	}
	r := newRack(e, "")
	e.Apply(bgpService("near", "Local"))
	near := e.serviceAddress("near")
	r.learns(near, e.hops(e.Node(1), e.Node(2))...)
	r.serves(near)

	judge := r.watch(near)
	e.Pod(3, "new-1", lab.Labels{"app": "web"})
	pods[0].Delete()
	r.learns(near, e.hops(e.Node(2), e.Node(3))...)
	e.Pod(1, "new-2", lab.Labels{"app": "web"})
	pods[1].Delete()
	r.learns(near, e.hops(e.Node(1), e.Node(3))...)
	judge("rollout of the pods", 4) // two ways came, two went
}

// The last endpoint on a node ends: the router is told at once. The time is that
// from the change as everybody hears of it from the API server, as the speaker
// does, to the router's kernel without the route.
func TestBGPLocalWithdrawsAtOnce(t *testing.T) {
	e := three(t)
	pod := e.Pod(1, "web-1", lab.Labels{"app": "web"})
	r := newRack(e, "")
	e.Apply(bgpService("near", "Local"))
	near := e.serviceAddress("near")
	ended, monitor := e.endpointsEnd(t, "near"), r.monitor(t)
	var took []time.Duration
	for range 10 {
		r.learns(near, e.hops(e.Node(1))...)
		began := time.Now()
		pod.SetReady(false)
		e.Eventually(settle, func() error {
			if !monitor.lostAt(near).After(began) || !ended().After(began) {
				return fmt.Errorf("the route was lost at %v, the endpoint at %v", monitor.lostAt(near), ended())
			}
			return nil
		})
		took = append(took, monitor.lostAt(near).Sub(ended()))
		pod.SetReady(true)
	}
	slices.Sort(took)
	t.Logf("from the endpoint's end to the router without the route: median %v, longest %v", took[len(took)/2], took[len(took)-1])
	if median := took[len(took)/2]; median > time.Second {
		t.Errorf("the route stays for %v after the last endpoint", median)
	}
}

// endpointsEnd returns when a watch has last said that a Service has no ready
// endpoint any more.
func (e edge) endpointsEnd(t *testing.T, service string) func() time.Time {
	t.Helper()
	w, err := e.Kube().DiscoveryV1().EndpointSlices(e.Namespace()).Watch(t.Context(),
		metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service, ResourceVersion: "0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	var mu sync.Mutex
	var last time.Time
	go func() {
		for event := range w.ResultChan() {
			slice, ok := event.Object.(*discoveryv1.EndpointSlice)
			if !ok {
				continue
			}
			ready := slices.ContainsFunc(slice.Endpoints, func(p discoveryv1.Endpoint) bool { return p.Conditions.Ready == nil || *p.Conditions.Ready })
			if !ready {
				mu.Lock()
				last = time.Now()
				mu.Unlock()
			}
		}
	}()
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return last
	}
}

// A node is to be deleted: the router first prefers other ways (RFC 8326), then
// has none through it, and the session stays. It is ended with the reason when
// the speaker ends. No new connection fails.
func TestBGPDrainAndFarewell(t *testing.T) {
	inPairs(t)
	e := three(t)
	e.podOnEachNode()
	r := newRack(e, "")
	far := r.far()
	node, rest := e.Node(1), e.hops(e.Node(2), e.Node(3))
	before := e.neighbours(r.router)[node.IP()]

	judge := r.watch(far)
	t.Cleanup(func() { e.taint(node.Name(), "") })
	e.taint(node.Name(), deletionTaint)
	e.Eventually(settle, func() error { return gracefulShutdown(r.router, far, node.IP()) })
	r.learns(far, rest...)
	if now := e.neighbours(r.router)[node.IP()]; now.State != "Established" || now.Dropped != before.Dropped {
		t.Errorf("the session of a node that is drained: %+v, was %+v", now, before)
	}
	e.taint(node.Name(), "") // it stays after all
	r.learns(far, e.hops()...)
	if now := e.neighbours(r.router)[node.IP()]; now.Dropped != before.Dropped {
		t.Errorf("the session was reset: %+v, was %+v", now, before)
	}
	e.taint(node.Name(), deletionTaint)
	r.learns(far, rest...)
	speaker := e.Quayside().Speaker(node)
	speaker.Stop()
	e.Eventually(settle, func() error {
		now := e.neighbours(r.router)[node.IP()]
		if now.State == "Established" || !strings.Contains(now.Reason, "Administrative Shutdown") || !strings.Contains(now.Farewell, "node "+node.Name()+" goes") {
			return fmt.Errorf("the router knows of the end of the session: %+v", now)
		}
		return nil
	})
	e.taint(node.Name(), "")
	speaker.Start()
	r.learns(far, e.hops()...)
	judge("drain, return, end, return", 4)
}

// gracefulShutdown returns nil if the way by a node asks not to be preferred, and
// others are there.
func gracefulShutdown(router *lab.Router, address, hop string) error {
	paths, err := bgpPaths(router, address)
	if err != nil {
		return err
	}
	for _, p := range paths {
		if p.NextHops[0].IP == hop && strings.Contains(p.Community.String, "graceful-shutdown") && len(paths) > 1 {
			return nil
		}
	}
	return fmt.Errorf("%s by %+v, want GRACEFUL_SHUTDOWN by %s", address, paths, hop)
}

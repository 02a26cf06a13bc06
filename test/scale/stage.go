package main

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
	"quayside.io/test/lab"
)

// stage is where the events happen, one after the other.
type stage struct {
	options
	lab        *lab.Cluster
	relay      *relay
	fleet      *fleet
	kubelets   *kubelets
	kubeconfig string
	controller *exec.Cmd
	last       counts        // of the last event
	took       time.Duration // it
}

// play brings the fleet up and lets everything happen to it.
func (s *stage) play(ctx context.Context, running *sync.WaitGroup) error {
	if err := s.assemble(ctx, running); err != nil {
		return err
	}
	s.kubelets = &kubelets{nodes: s.nodes, pause: kubeletPause, write: func(ctx context.Context, i int) error { return beat(ctx, s.lab.Kube(), i) }}
	running.Go(func() { s.kubelets.run(ctx) })
	fmt.Printf("# %d nodes, %d Services (%d of policy Local) with %d EndpointSlices, %d speakers: %d have watches of their own, the others share one\n",
		s.nodes, s.services, s.local, s.services*s.slices, s.speaking, s.watching)
	slices, kube := s.lab.Kube().DiscoveryV1().EndpointSlices("default"), s.lab.Kube()
	return errors.Join(
		s.atRest(ctx),
		s.deaths(ctx),
		s.measure(ctx, "one endpoint changes its node (policy Local)", func() error {
			_, err := slices.Update(ctx, slice("s00000", nodeName(1), 1, s.endpoints), metav1.UpdateOptions{})
			return err
		}, quiet),
		s.measure(ctx, "one endpoint changes its node (policy Cluster)", func() error {
			_, err := slices.Update(ctx, slice(fmt.Sprintf("s%05d", s.services-1), nodeName(1), 1, s.endpoints), metav1.UpdateOptions{})
			return err
		}, quiet),
		s.measure(ctx, "one Service is added", func() error { return makeService(ctx, kube, "added", false, slice("added", nodeName(0), 1, 1)) }, quiet),
		s.measure(ctx, fmt.Sprintf("the API server is away for %v, and comes back", s.outage), func() error {
			s.relay.setAway(true)
			err := sleep(ctx, s.outage)
			s.relay.setAway(false)
			return err
		}, s.comeBack()),
	)
}

// atRest lets nothing happen, round by round.
func (s *stage) atRest(ctx context.Context) error {
	var hourly []float64
	for range s.rounds {
		if err := s.measure(ctx, fmt.Sprintf("rest for %v", s.rest), func() error { return sleep(ctx, s.rest) }, 0); err != nil {
			return err
		}
		hourly = append(hourly, s.hourly(s.last.bytes("speaker", "watch"), s.took))
	}
	fmt.Printf("\n%-34s %s\n", "watch bytes of a speaker-hour", median(hourly, func(v float64) string { return size(int64(v)) }))
	return nil
}

// deaths lets one node after the other die and return.
func (s *stage) deaths(ctx context.Context) error {
	var writes, events []float64
	for range s.rounds {
		victim, has, err := s.victim()
		if err != nil {
			return err
		}
		kube := s.lab.Kube()
		if err := s.measure(ctx, fmt.Sprintf("one node dies, with %d addresses", has), func() error {
			s.fleet.kill(victim)
			if err := setReady(ctx, kube, victim.index, corev1.ConditionUnknown); err != nil {
				return err
			}
			return eventually(ctx, s.patience, func() error { // on a busy machine nothing may happen for a while
				if all, _ := s.fleet.lan.held(victim.port); all < s.services {
					return fmt.Errorf("%d of %d addresses are announced", all, s.services)
				}
				return nil
			})
		}, quiet); err != nil {
			return err
		}
		all, told := s.last.writes()
		writes, events = append(writes, float64(all)), append(events, float64(told))
		if err := s.measure(ctx, "it returns", func() error {
			if err := s.fleet.start(ctx, victim); err != nil {
				return err
			}
			return setReady(ctx, kube, victim.index, corev1.ConditionTrue)
		}, quiet); err != nil {
			return err
		}
	}
	count := func(v float64) string { return fmt.Sprint(v) }
	fmt.Printf("\n%-34s %s, of them Events %s\n", "API writes of a death", median(writes, count), median(events, count))
	return nil
}

// quiet is how long nothing must have been written for an event to be over: longer than
// the pauses between two writes of one SpeakerStatus.
const quiet = 7 * time.Second

// comeBack is how long nothing must have been asked after an outage: a speaker asks for
// one thing after the other, at distances that grow with the fleet.
func (s *stage) comeBack() time.Duration {
	return max(quiet, 5*time.Duration(s.nodes)*time.Second/350)
}

// assemble starts all speakers, and waits until every Service is announced.
func (s *stage) assemble(ctx context.Context, running *sync.WaitGroup) error {
	s.fleet = newFleet(s.nodes, s.speaking)
	w := &windows{kubeconfig: s.kubeconfig, own: s.watching, nodesUpTo: s.nodesUpTo, running: running}
	var err error
	if w.shared, err = w.open(ctx, "others"); err != nil {
		return err
	}
	select {
	case <-w.shared.Synced():
	case <-ctx.Done():
		return ctx.Err()
	}
	began := time.Now()
	s.fleet.window = w.of
	if err := eventually(ctx, 10*time.Minute, func() error {
		left := 0
		for _, svc := range w.shared.Snapshot().Services.All() {
			if svc.Spec.Type == corev1.ServiceTypeLoadBalancer && len(svc.Status.LoadBalancer.Ingress) == 0 {
				left++
			}
		}
		if left > 0 {
			return fmt.Errorf("%d Services have no address", left)
		}
		return nil
	}); err != nil {
		return err
	}
	say("the controller has given every Service its address after %v", time.Since(began).Round(time.Second))
	if !s.fresh {
		if err := s.remember(ctx, w.shared); err != nil {
			return err
		}
	}
	say("what an earlier life has left is written %v later", time.Since(began).Round(time.Second))
	running.Go(func() { s.fleet.gossip.run(ctx) })
	began = time.Now()
	for _, n := range s.fleet.nodes {
		if err := s.fleet.start(ctx, n); err != nil {
			return err
		}
	}
	if err := eventually(ctx, 20*time.Minute, telling(began, func() error {
		if all, _ := s.fleet.lan.held(s.fleet.nodes[0].port); all < s.services {
			return fmt.Errorf("%d of %d addresses are announced", all, s.services)
		}
		if time.Since(s.relay.lastWrite()) < quiet {
			return errors.New("the fleet still writes")
		}
		return nil
	})); err != nil {
		return err
	}
	say("%d speakers announce everything and have nothing to write %v after their start", s.speaking, time.Since(began).Round(time.Second))
	return nil
}

// telling says from time to time what is still waited for.
func telling(began time.Time, ask func() error) func() error {
	said := began
	return func() error {
		err := ask()
		if err != nil && time.Since(said) > 15*time.Second {
			said = time.Now()
			say("%v after their start: %v", time.Since(began).Round(time.Second), err)
		}
		return err
	}
}

// remember writes the SpeakerStatuses that an earlier life of the fleet would have left:
// that nobody has anything yet happens once in the life of a cluster, and in it every
// speaker places every address over and over until all are claimed.
func (s *stage) remember(ctx context.Context, api *cluster.API) error {
	var local, all []v1alpha1.Announcing
	for key, svc := range api.Snapshot().Services.All() {
		for _, in := range svc.Status.LoadBalancer.Ingress {
			one := v1alpha1.Announcing{Service: key.String(), Address: in.IP, Protocol: "l2", Epoch: 1, Interfaces: []string{"eth0"}}
			if svc.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
				local = append(local, one)
			} else {
				all = append(all, one)
			}
		}
	}
	byName := func(a, b v1alpha1.Announcing) int { return cmp.Compare(a.Service, b.Service) }
	slices.SortFunc(all, byName)
	slices.SortFunc(local, byName) // its i-th Service has its endpoint on the i-th node, see furnish
	return each(ctx, s.nodes, func(ctx context.Context, i int) error {
		node, err := s.lab.Kube().CoreV1().Nodes().Get(ctx, nodeName(i), metav1.GetOptions{})
		if err != nil {
			return err
		}
		status := &v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i)}}
		if i < len(local) {
			status.Status.Announcing = append(status.Status.Announcing, local[i])
		}
		if i < s.speaking { // the others have no interface
			for j := i; j < len(all); j += s.speaking {
				status.Status.Announcing = append(status.Status.Announcing, all[j])
			}
			at := linkOf(i)
			status.Status.Interfaces = []v1alpha1.SpeakerInterface{{Name: at.Name, MAC: at.MAC, Up: true, Prefixes: []string{at.Prefixes[0].String()}}}
		}
		status.Status.AnnouncingCount = int64(len(status.Status.Announcing))
		status.Status.Members, status.Status.Node = v1alpha1.SpeakerMembers{Alive: 1}, announce.NodeSummary(node)
		status.Status.GossipKey = base64.StdEncoding.EncodeToString(keyOf(nodeName(i)))
		return eventually(ctx, time.Minute, func() error { // the server may be busy
			if have, made := api.Snapshot().SpeakerStatuses.Get(snapshot.KeyOf(status)); made {
				status.ResourceVersion = have.ResourceVersion
			}
			return api.UpdateStatus(ctx, status)
		})
	})
}

// victim is a node whose own watches are not those measured, and how many addresses it
// has: the median of those that have any.
func (s *stage) victim() (*node, int, error) {
	var holders []*node
	held := func(n *node) int { _, has := s.fleet.lan.held(n.port); return has }
	for _, n := range s.fleet.nodes[s.watching:] {
		if held(n) > 0 {
			holders = append(holders, n)
		}
	}
	if len(holders) == 0 {
		return nil, 0, errors.New("nobody of those who share a watch announces anything")
	}
	slices.SortStableFunc(holders, func(a, b *node) int { return held(a) - held(b) })
	victim := holders[len(holders)/2]
	return victim, held(victim), nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
}

// play brings the fleet up and lets everything happen to it.
func (s *stage) play(ctx context.Context, running *sync.WaitGroup) error {
	if err := s.assemble(ctx, running); err != nil {
		return err
	}
	s.kubelets = &kubelets{nodes: s.nodes, pause: kubeletPause, write: func(ctx context.Context, i int) error { return beat(ctx, s.lab.Kube(), i) }}
	running.Go(func() { s.kubelets.run(ctx) })
	fmt.Printf("# %d nodes, %d Services (%d of policy Local), %d speakers: %d have watches of their own, the others share one\n",
		s.nodes, s.services, s.local, s.speaking, s.watching)
	victim, err := s.victim()
	if err != nil {
		return err
	}
	slices, kube := s.lab.Kube().DiscoveryV1().EndpointSlices("default"), s.lab.Kube()
	return errors.Join(
		s.measure(ctx, fmt.Sprintf("rest for %v", s.rest), func() error { return sleep(ctx, s.rest) }, 0),
		s.measure(ctx, "one node dies", func() error {
			s.fleet.kill(victim)
			return setReady(ctx, kube, victim.index, corev1.ConditionUnknown)
		}, quiet),
		s.measure(ctx, "it returns", func() error {
			if err := s.fleet.start(ctx, victim); err != nil {
				return err
			}
			return setReady(ctx, kube, victim.index, corev1.ConditionTrue)
		}, quiet),
		s.measure(ctx, "one endpoint changes its node (policy Local)", func() error {
			_, err := slices.Update(ctx, slice("s00000", nodeName(1)), metav1.UpdateOptions{})
			return err
		}, quiet),
		s.measure(ctx, "one endpoint changes its node (policy Cluster)", func() error {
			_, err := slices.Update(ctx, slice(fmt.Sprintf("s%05d", s.services-1), nodeName(1)), metav1.UpdateOptions{})
			return err
		}, quiet),
		s.measure(ctx, "one Service is added", func() error { return makeService(ctx, kube, "added", false, nodeName(0)) }, quiet),
		s.measure(ctx, fmt.Sprintf("the API server is away for %v, and comes back", s.outage), func() error {
			s.relay.setAway(true)
			err := sleep(ctx, s.outage)
			s.relay.setAway(false)
			return err
		}, s.comeBack()),
	)
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
	running.Go(func() { s.fleet.gossip.run(ctx) })
	began = time.Now()
	for _, n := range s.fleet.nodes {
		if err := s.fleet.start(ctx, n); err != nil {
			return err
		}
	}
	if err := eventually(ctx, 20*time.Minute, func() error {
		if all, _ := s.fleet.lan.held(s.fleet.nodes[0].port); all < s.services {
			return fmt.Errorf("%d of %d addresses are announced", all, s.services)
		}
		if time.Since(s.relay.lastWrite()) < quiet {
			return errors.New("the fleet still writes")
		}
		return nil
	}); err != nil {
		return err
	}
	say("%d speakers announce everything and have nothing to write %v after their start", s.speaking, time.Since(began).Round(time.Second))
	return nil
}

// victim is a node that has addresses, whose own watches are not those measured.
func (s *stage) victim() (*node, error) {
	for _, n := range s.fleet.nodes[s.watching:] {
		if _, has := s.fleet.lan.held(n.port); has > 0 {
			return n, nil
		}
	}
	return nil, errors.New("nobody of those who share a watch announces anything")
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

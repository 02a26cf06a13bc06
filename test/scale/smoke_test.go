package main

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"quayside.io/test/lab"
)

// TestSmallFleet runs twenty speakers against a real API server: what one death costs it is
// counted, and within bounds.
func TestSmallFleet(t *testing.T) {
	lab.Require(t)
	t.Chdir("../..") // where the product is built
	o := options{nodes: 20, services: 40, local: 4, watching: 5, nodesUpTo: 10, images: 5, patience: time.Minute}
	if err := run(t.Context(), o, func(s *stage, ctx context.Context, running *sync.WaitGroup) error {
		if err := s.assemble(ctx, running); err != nil {
			return err
		}
		s.kubelets = &kubelets{nodes: s.nodes} // at rest
		victim, _, err := s.victim()
		if err != nil {
			return err
		}
		err = s.measure(ctx, "rest", func() error { return sleep(ctx, time.Second) }, 0)
		if n, _ := s.last.writes(); n > 0 {
			t.Errorf("%d API writes at rest", n)
		}
		err = errors.Join(err, s.measure(ctx, "one node dies", func() error { s.fleet.kill(victim); return nil }, quiet))
		// Its addresses are taken over, and a few speakers tell who is alive.
		if n, _ := s.last.writes(); n < 2 || n > 15 {
			t.Errorf("the death of one node took %d API writes, want a few and 15 at most", n)
		}
		if n := s.last.Requests[request{"speaker", "list", "nodes"}]; n > 0 {
			t.Errorf("it made speakers list all Nodes %d times", n)
		}
		if all, _ := s.fleet.lan.held(victim.port); all != s.services {
			t.Errorf("%d of %d addresses are announced after it", all, s.services)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

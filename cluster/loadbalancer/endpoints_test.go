package loadbalancer

import (
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
)

func TestStateOf(t *testing.T) {
	yes, no := new(true), new(false)
	for _, c := range []struct {
		ready, serving, terminating *bool
		want                        EndpointState
	}{
		{nil, nil, nil, Ready},
		{yes, no, yes, Ready}, // publishNotReadyAddresses
		{no, nil, nil, Starting},
		{no, yes, nil, Starting},
		{no, yes, no, Starting},
		{no, yes, yes, Draining},
		{no, nil, yes, Draining},
		{no, no, yes, Ended},
	} {
		got := StateOf(discoveryv1.EndpointConditions{Ready: c.ready, Serving: c.serving, Terminating: c.terminating})
		if got != c.want {
			t.Errorf("ready %v, serving %v, terminating %v: state %d, want %d", c.ready, c.serving, c.terminating, got, c.want)
		}
	}
}

package e2e

import (
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/test/lab"
)

// byQuayside installs Quayside as the chart has it. A speaker that is killed is
// started again by its kubelet.
func byQuayside(profile string, within time.Duration) mover {
	return mover{
		name: "quayside-" + profile, within: within, stays: true,
		install: func(r *rig) string {
			r.Install(lab.Values{"speaker": lab.Values{"profile": profile}})
			r.Apply(bigPool)
			return r.awaitAddress()
		},
		agrees: (*rig).speakersAgree,
		kill:   func(r *rig, n *lab.Node) { r.Quayside().Speaker(n).Crash() },
		revive: func(r *rig, n *lab.Node) { r.Quayside().Speaker(n).AwaitReady() },
	}
}

// awaitAddress waits for the address of Service web.
func (r *rig) awaitAddress() (address string) {
	r.Eventually(settle, func() error {
		svc, err := r.Kube().CoreV1().Services(r.Namespace()).Get(r.b.Context(), "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(svc.Status.LoadBalancer.Ingress) == 0 {
			return fmt.Errorf("Service web has no address yet: %v", svc.Status.Conditions)
		}
		address = svc.Status.LoadBalancer.Ingress[0].IP
		return nil
	})
	return address
}

// speakersAgree asks all speakers who is alive and who owns the address.
func (r *rig) speakersAgree(owner string) error {
	for _, speaker := range r.Quayside().Speakers() {
		var s struct {
			Alive  []string
			Owners map[string]string
		}
		if err := json.Unmarshal([]byte(speaker.Admin("/state")), &s); err != nil {
			return err
		}
		if len(s.Alive) != len(r.Nodes()) || s.Owners[r.address] != owner {
			return fmt.Errorf("the speaker of %s sees %v alive and %s the owner, not %s",
				speaker.Node(), s.Alive, s.Owners[r.address], owner)
		}
	}
	return nil
}

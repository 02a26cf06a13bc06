package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/test/lab"
)

// The speaker of one node may not open packet sockets. The others have all
// addresses, also new ones; the Node, its SpeakerStatus and `quayside status` say
// why it has none.
func TestASpeakerThatMayNotSpeak(t *testing.T) {
	beside(t)
	e := quayside(t, "nftables")
	e.Pod(2, "web", lab.Labels{"app": "web"})
	laptop := e.Client("laptop")
	node := e.Node(1)
	speaker := e.Quayside().Speaker(node)
	giveBack := speaker.Deprive("NET_RAW")
	t.Cleanup(giveBack)
	speaker.Crash()
	e.Eventually(settle, func() error {
		status := e.speakerStatuses()[node.Name()]
		if status == nil || len(status.Status.Announcing) > 0 || !strings.Contains(fmt.Sprint(status.Status.Members.NotAlive), "NET_RAW") {
			return fmt.Errorf("its SpeakerStatus does not say what it lacks: %+v", status)
		}
		return nil
	})
	for i := range 4 { // of which one would have been its own
		name := fmt.Sprintf("web%d", i)
		e.Apply(strings.Replace(loadBalancer("Cluster"), "name: web", "name: "+name, 1))
		if owner := e.owner(laptop, e.serviceAddress(name)); owner.Name() == node.Name() {
			t.Errorf("%s is at %s, which may not speak", name, owner.Name())
		}
	}
	e.Eventually(settle, func() error {
		list, err := e.Kube().EventsV1().Events("default").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, event := range list.Items {
			if event.Regarding.Kind == "Node" && event.Regarding.Name == node.Name() && event.Reason == "SpeakerWaiting" && strings.Contains(event.Note, "NET_RAW") {
				return nil
			}
		}
		return fmt.Errorf("no Event about %s among %d", node.Name(), len(list.Items))
	})
	e.Eventually(settle, func() error { // a leader that has just begun may not have read it yet
		if screen := laptop.Exec(e.Quayside().Binary(), "status", "--kubeconfig", e.Kubeconfig()); !strings.Contains(screen, "NET_RAW") {
			return fmt.Errorf("the screen does not say what it lacks:\n%s", screen)
		}
		return nil
	})
	giveBack()
	speaker.Crash()
	time.Sleep(time.Second) // what was reported of the old process holds no more
	speaker.AwaitReady()
	e.Eventually(settle, func() error {
		if s := e.speakerStatuses()[node.Name()]; int(s.Status.Members.Alive) != len(e.Nodes()) {
			return fmt.Errorf("it sees %d alive", s.Status.Members.Alive)
		}
		return nil
	})
}

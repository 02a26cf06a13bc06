package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"quayside.io/api/v1alpha1"
	"quayside.io/test/lab"
)

// speakerStatus reads what the speaker of a node says about itself.
func (e edge) speakerStatus(node string) (*v1alpha1.SpeakerStatus, error) {
	u, err := e.Dynamic().Resource(v1alpha1.GroupVersion().WithResource("speakerstatuses")).Get(e.t.Context(), node, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	s := &v1alpha1.SpeakerStatus{}
	return s, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, s)
}

// The status of the one speaker that answers names the address, its MAC and
// all members; the others do not claim it; the Service hears of it in one event.
func TestSpeakersSayWhatTheyDo(t *testing.T) {
	beside(t)
	e := quayside(t, "nftables")
	e.Pod(1, "web-1", lab.Labels{"app": "web"})
	e.Apply(loadBalancer("Cluster"))
	address, laptop := e.serviceAddress("web"), e.Client("laptop")
	owner := e.owner(laptop, address)
	e.Eventually(settle, func() error {
		for _, n := range e.Nodes() {
			s, err := e.speakerStatus(n.Name())
			if err != nil {
				return err
			}
			if err := checkSpeakerStatus(s, n, address, n.Name() == owner.Name(), len(e.Nodes())); err != nil {
				return fmt.Errorf("%s: %w", n.Name(), err)
			}
		}
		return nil
	})
	// Events have a pace, and those of the tests before may stand in line.
	e.Eventually(settle, func() error {
		if e.announcingEvents(t) == 0 {
			return errors.New("the Service has not heard who announces its address")
		}
		return nil
	})
	time.Sleep(3 * time.Second)
	if events := e.announcingEvents(t); events != 1 {
		t.Errorf("%d events, want one", events)
	}
}

func checkSpeakerStatus(s *v1alpha1.SpeakerStatus, n *lab.Node, address string, owns bool, nodes int) error {
	announces := false
	for _, a := range s.Status.Announcing {
		announces = announces || a.Address == address && a.Protocol == "l2" && a.Epoch > 0 && len(a.Interfaces) == 1
	}
	hasMAC := false
	for _, i := range s.Status.Interfaces {
		hasMAC = hasMAC || i.MAC == n.MAC() && i.Up && strings.Contains(fmt.Sprint(i.Prefixes), n.IP()+"/")
	}
	switch {
	case announces != owns:
		return fmt.Errorf("announces %s: %v, owns it: %v (%+v)", address, announces, owns, s.Status.Announcing)
	case !hasMAC:
		return fmt.Errorf("interfaces %+v lack %s with %s", s.Status.Interfaces, n.MAC(), n.IP())
	case int(s.Status.Members.Alive) != nodes || len(s.Status.Members.NotAlive) > 0:
		return fmt.Errorf("members %+v, want %d alive", s.Status.Members, nodes)
	case s.Status.Leaving:
		return fmt.Errorf("says that it leaves")
	case len(s.OwnerReferences) != 1 || s.OwnerReferences[0].Kind != "ClusterRole":
		return fmt.Errorf("owned by %+v: it would outlive an uninstall", s.OwnerReferences)
	}
	return nil
}

// The SpeakerStatus of a Node that is gone goes too, though the Node is not its owner; the
// others stay. The leader looks once a minute, and waits for another: others have the
// lane meanwhile, some of which take the leader or the API server away.
func TestSpeakerStatusGoesWithItsNode(t *testing.T) {
	beside(t)
	const lane = "iptables"
	e := quayside(t, lane)
	if err := e.TryApply("{apiVersion: quayside.io/v1alpha1, kind: SpeakerStatus, metadata: {name: gone}}"); err != nil {
		t.Fatal(err)
	}
	lend(lane, func() {
		e.Eventually(5*time.Minute, func() error {
			_, err := e.speakerStatus("gone")
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("it is still there (%v)", err)
		})
	})
	e.awaitOwners("ClusterRole")
}

func (e edge) announcingEvents(t *testing.T) (n int) {
	t.Helper()
	list, err := e.Kube().CoreV1().Events(e.Namespace()).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=Announcing"})
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range list.Items {
		if event.InvolvedObject.Name == "web" {
			n += max(1, int(event.Count))
		}
	}
	return n
}

package controller

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
	"quayside.io/test/objects"
)

// stirred is a cluster to which one more thing has happened.
func stirred(t *rapid.T, c *snapshot.Cluster) *snapshot.Cluster {
	name := fmt.Sprintf("n%d", rapid.IntRange(1, 4).Draw(t, "node"))
	said := func(change func(*v1alpha1.SpeakerStatus)) *snapshot.Cluster {
		s := &v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if old, known := c.SpeakerStatuses.Get(snapshot.Key{Name: name}); known {
			s = old.DeepCopy()
		}
		change(s)
		return c.With(s)
	}
	return rapid.SampledFrom([]func() *snapshot.Cluster{
		func() *snapshot.Cluster { return c },
		func() *snapshot.Cluster {
			return c.With(&networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}})
		},
		func() *snapshot.Cluster {
			return c.With(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "tls"}})
		},
		func() *snapshot.Cluster { return c.With(objects.Endpoints()) },
		func() *snapshot.Cluster { return c.With(objects.Endpoints(name)) },
		func() *snapshot.Cluster { return c.With(objects.Endpoints("n1", name)) },
		func() *snapshot.Cluster { return c.With(objects.Service("stranger", "203.0.113.1")) },
		func() *snapshot.Cluster {
			return c.Without(snapshot.Service, snapshot.Key{Namespace: "default", Name: "stranger"})
		},
		func() *snapshot.Cluster { return c.With(objects.DrainedNode(rapid.IntRange(1, 4).Draw(t, "drained"))) },
		func() *snapshot.Cluster { return c.With(objects.Node(rapid.IntRange(1, 4).Draw(t, "back"))) },
		func() *snapshot.Cluster { return c.Without(snapshot.Node, snapshot.Key{Name: name}) },
		func() *snapshot.Cluster { return c.Without(snapshot.SpeakerStatus, snapshot.Key{Name: name}) },
		func() *snapshot.Cluster {
			return said(func(s *v1alpha1.SpeakerStatus) { s.Status.Members.NotAlive = []string{name + ": it may not"} })
		},
		func() *snapshot.Cluster {
			return said(func(s *v1alpha1.SpeakerStatus) { s.Status.Members.NotAlive = nil })
		},
		func() *snapshot.Cluster {
			return said(func(s *v1alpha1.SpeakerStatus) {
				s.Status.BGPSessions = []v1alpha1.BGPSession{{Peer: "tor", State: rapid.SampledFrom([]string{"Idle", "Active"}).Draw(t, "session")}}
			})
		},
		func() *snapshot.Cluster {
			return said(func(s *v1alpha1.SpeakerStatus) {
				s.Status.Interfaces = []v1alpha1.SpeakerInterface{{Name: "eth0", Up: true, Prefixes: []string{rapid.SampledFrom([]string{"10.0.0.9/24", "10.9.0.9/24", objects.VIP(1) + "/24"}).Draw(t, "prefix")}}}
			})
		},
	}).Draw(t, "what")()
}

// Whatever happened, the plan that is kept has the Problems of one that is made anew.
func TestTheOverviewIsThatOfAFreshLook(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := snapshot.Of(objects.Fleet(4)...)
		now := time.Date(2026, 11, 24, 8, 0, 0, 0, time.UTC)
		o := overview{}
		for i := range rapid.IntRange(1, 30).Draw(t, "steps") {
			c, now = stirred(t, c), now.Add(inspectEvery)
			got := o.compile(c, now, announce.Options{}).Problems
			want := announce.Compile(c, "", announce.ViewOf(c), now, announce.Options{}).Problems
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("step %d (-fresh +kept):\n%s", i, diff)
			}
		}
	})
}

// large is a cluster of so many nodes, each with a speaker.
func large(nodes int) *snapshot.Cluster {
	var all []snapshot.Object
	for i := range nodes {
		n := objects.Node(i + 1)
		n.Status.Addresses[0].Address = fmt.Sprintf("10.%d.%d.1", 1+i/250, i%250)
		s := &v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}
		s.Status.Interfaces = []v1alpha1.SpeakerInterface{{Name: "eth0", MAC: "02:00:00:00:00:01", Up: true, Prefixes: []string{n.Status.Addresses[0].Address + "/8"}}}
		all = append(all, n, s)
	}
	for i := range 1000 {
		svc := objects.Service(fmt.Sprintf("web%d", i), fmt.Sprintf("10.0.%d.%d", 8+i/250, i%250))
		all = append(all, svc)
	}
	return snapshot.Of(append(all, objects.Fleet(0)...)...)
}

// What happens all the time in a cluster of 5,000 nodes makes no plan.
func TestTheOverviewOfAnUnchangedWorldIsNotMadeAgain(t *testing.T) {
	c, now := large(5000), time.Date(2026, 11, 24, 8, 0, 0, 0, time.UTC)
	o := overview{}
	plan := o.compile(c, now, announce.Options{})
	others := c.With(&networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}})
	s, _ := c.SpeakerStatuses.Get(snapshot.Key{Name: "n7"})
	s = s.DeepCopy()
	s.Status.Members.NotAlive = []string{"n9: it does not answer"}
	slice := objects.Endpoints("n3")
	slice.Name, slice.Labels = "web7-1", map[string]string{"kubernetes.io/service-name": "web7"}
	for i, happened := range []*snapshot.Cluster{c, others, others.With(s), others.With(s, slice)} {
		if got := o.compile(happened, now.Add(time.Duration(i)*inspectEvery), announce.Options{}); got != plan {
			t.Errorf("after %d things that change nothing there is another plan", i)
		}
	}
	if allocations := testing.AllocsPerRun(10, func() { o.compile(o.made.Of, now, announce.Options{}) }); allocations > 0 {
		t.Errorf("a look at an unchanged world allocates %v times", allocations)
	}
	if got := o.compile(others.Without(snapshot.Node, snapshot.Key{Name: "n3"}), now, announce.Options{}); got == plan {
		t.Error("a Node is gone, and the plan is the same")
	}
}

// BenchmarkOverview is what the leader does twice a second where something changes all
// the time, in a cluster of 5,000 nodes.
func BenchmarkOverview(b *testing.B) {
	c, now := large(5000), time.Date(2026, 11, 24, 8, 0, 0, 0, time.UTC)
	b.Run("made anew", func(b *testing.B) {
		for b.Loop() {
			announce.Compile(c, "", announce.ViewOf(c), now, announce.Options{})
		}
	})
	b.Run("unchanged", func(b *testing.B) {
		o := overview{}
		o.compile(c, now, announce.Options{})
		for b.Loop() {
			o.compile(c, now, announce.Options{})
		}
	})
	b.Run("a status of no matter", func(b *testing.B) {
		o := overview{}
		o.compile(c, now, announce.Options{})
		s, _ := c.SpeakerStatuses.Get(snapshot.Key{Name: "n7"})
		for i := 0; b.Loop(); i++ {
			next := s.DeepCopy()
			next.Status.Members.NotAlive = []string{fmt.Sprint("n9: ", i)}
			c = c.With(next)
			o.compile(c, now, announce.Options{})
		}
	})
}

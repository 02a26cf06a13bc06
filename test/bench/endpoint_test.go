package bench

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
	"quayside.io/controller/assign"
	"quayside.io/proxy/route"
	"quayside.io/speaker/announce"
)

// BenchmarkLeaderEndpoint is what the leader does when one endpoint of 500,000 has changed
// its node, of a Service of policy Local or Cluster: the snapshot, the plan of announcements,
// and the routes. It keeps both, as the controller does; addresses are not given anew for
// endpoints. Each of the hundred nodes announces a hundred addresses.
func BenchmarkLeaderEndpoint(b *testing.B) {
	now, given := time.Now(), assign.Options{DefaultLoadBalancer: true}
	c := leaderWorld(b)
	key := snapshot.Key{Namespace: "team-0", Name: "service-0"}
	svc, _ := c.Services.Get(key)
	local := svc.DeepCopy()
	local.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	plan := assign.Compile(c.With(local), nil, nil, now, given)
	for c = c.With(local); len(plan.Updates) > 0; plan = assign.Compile(c, plan, nil, now, given) {
		for _, u := range plan.Updates {
			c = c.With(u.Object())
		}
	}
	c = c.With(announcers(c)...)
	table := route.Compile(c, nil, route.Options{Now: now})
	view := announce.ViewOf(c)
	made := announce.Made{Plan: announce.Compile(c, "", view, now, announce.Options{}), Of: c}
	for _, of := range []struct {
		policy  string
		service snapshot.Key
	}{{"Local", key}, {"Cluster", snapshot.Key{Namespace: "team-1", Name: "service-20"}}} {
		changed := func(i int) *snapshot.Cluster {
			slice := c.SlicesOf(of.service)[0].DeepCopy()
			node := []string{"node-50", "node-51"}[i%2]
			slice.Endpoints[0].NodeName = &node
			c = c.With(slice)
			return c
		}
		for _, part := range []struct {
			name string
			do   func(*snapshot.Cluster)
		}{
			{"snapshot", func(*snapshot.Cluster) {}},
			{"announce", func(c *snapshot.Cluster) {
				if !made.StillValid(c) {
					next := view
					next.Before = made
					made = announce.Made{Plan: announce.Compile(c, "", next, now, announce.Options{}), Of: c}
				}
			}},
			{"route", func(c *snapshot.Cluster) { table = route.Compile(c, table, route.Options{Now: now}) }},
		} {
			b.Run(of.policy+"/"+part.name, func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					part.do(changed(i))
				}
			})
		}
	}
}

// announcers are the SpeakerStatuses of all nodes, which share the addresses of c.
func announcers(c *snapshot.Cluster) (statuses []snapshot.Object) {
	nodes := c.Nodes.Sorted()
	says := make([]*v1alpha1.SpeakerStatus, len(nodes))
	for i, n := range nodes {
		says[i] = &v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}
		says[i].Status.Members.Alive = 1
		says[i].Status.Interfaces = []v1alpha1.SpeakerInterface{{Name: "eth0", Up: true, Prefixes: []string{fmt.Sprintf("10.255.0.%d/8", i+1)}}}
		statuses = append(statuses, says[i])
	}
	for i, svc := range c.Services.Sorted() {
		for _, in := range svc.Status.LoadBalancer.Ingress {
			s := &says[i%len(says)].Status
			s.Announcing = append(s.Announcing, v1alpha1.Announcing{Service: snapshot.KeyOf(svc).String(), Address: in.IP, Protocol: "l2", Epoch: 1})
			s.AnnouncingCount++
		}
	}
	return statuses
}

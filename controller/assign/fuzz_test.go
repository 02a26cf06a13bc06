package assign_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
	"quayside.io/controller/assign"
	"quayside.io/test/scenario"
)

// FuzzCompile feeds arbitrary objects: Compile does not panic, answers the same
// twice, comes to rest, gives no address to two Services that do not share
// (unless somebody else did), and gives none that is a node's.
func FuzzCompile(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.yaml")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add("kind: Service\nspec: {type: LoadBalancer, ipFamilies: [IPv7, IPv6, IPv6], clusterIPs: [None]}\nstatus: {loadBalancer: {ingress: [{ip: '::ffff:10.0.0.1'}, {}]}}")
	f.Add("kind: IPAddressPool\nspec: {addresses: ['::/0', '1.0.0.0-223.255.255.255', '-', '2000::/3'], reserved: ['2000::/3'], reuseAfter: -1s, serviceAllocation: {priority: -1}}")
	f.Add("kind: IPAddressPool\nspec: {addresses: [10.0.0.0/28, '2000::/120'], reuseAfter: 9999h}\nstatus: {restingCount: -1, resting: [{addresses: '2000::/3', since: '9999-12-31T23:59:59Z'}, {addresses: 10.0.0.1-10.0.0.1}, {addresses: 10.0.0.0/8}]}\n---\nkind: Service\nspec: {type: LoadBalancer}")
	f.Fuzz(func(t *testing.T, text string) {
		c := snapshot.Of(scenario.Objects(text)...)
		opts := options()
		opts.PublishService = snapshot.Key{Namespace: "edge", Name: "proxy"}
		first := assign.Compile(c, nil, nil, noon(), opts)
		again := assign.Compile(c, nil, nil, noon(), opts)
		if diff := samePlan(first, again); diff != "" {
			t.Fatalf("two plans for one cluster: %s", diff)
		}
		settled, plan := settle(t, c, first, noon(), opts)
		nodes := map[netip.Addr]bool{}
		for _, n := range c.Nodes.All() {
			for _, na := range n.Status.Addresses {
				if a, err := netip.ParseAddr(na.Address); err == nil && (na.Type == corev1.NodeInternalIP || na.Type == corev1.NodeExternalIP) {
					nodes[a] = true
				}
			}
		}
		for key, s := range settled.Services.All() {
			old, _ := c.Services.Get(key)
			for _, a := range statusOf(s) {
				if slices.Contains(statusOf(old), a) || len(s.Annotations[loadbalancer.AnnotationGiven]) == 0 {
					continue
				}
				if nodes[a] {
					t.Fatalf("%v gets %v, a node's own", key, a)
				}
				for _, h := range plan.Holdings {
					o, _ := settled.Services.Get(h.Service)
					if group, _ := loadbalancer.Annotation(s, loadbalancer.AnnotationSharingKey); h.Address == a && h.Service != key && group == "" {
						t.Fatalf("%v gets %v, which %v has", key, a, snapshot.KeyOf(o))
					}
				}
			}
		}
	})
}

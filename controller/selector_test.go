package controller_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"quayside.io/cluster"
	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/controller"
	"quayside.io/controller/assign"
	"quayside.io/proxy/route"
)

// granted remembers what the proxies are to read.
type granted struct {
	atomic.Pointer[[]cluster.Grant]
}

func (g *granted) Set(grants []cluster.Grant) { g.Store(&grants) }

func (g *granted) Run(ctx context.Context) error { <-ctx.Done(); return nil }

func (g *granted) Refused() map[string]string { return nil }

func (g *granted) Changed() <-chan struct{} { return nil }

// TestNamespacesBySelector: the status of an Ingress, its Problems and what the
// proxies may read come and go with the label of its namespace.
func TestNamespacesBySelector(t *testing.T) {
	f := manifests(t, `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: site, namespace: shop}
spec: {ingressClassName: quayside, defaultBackend: {service: {name: nowhere, port: {number: 80}}}}
`)
	rules := ingressclass.Rules{Namespaces: labels.SelectorFromSet(labels.Set{"edge": "public"})}
	var grants granted
	h := start(t, controller.Options{
		Source: f.Source, Writer: f, Routes: &route.Options{Classes: rules}, Grants: &controller.GrantOptions{To: &grants, Own: "system"},
		Assign: assign.Options{Classes: rules, PublishAddresses: []netip.Addr{netip.MustParseAddr("192.0.2.99")}},
	})
	for _, edge := range []string{"private", "public", "private", "public"} {
		f.Put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"edge": edge}}})
		served := edge == "public"
		eventually(t, fmt.Sprintf("an Ingress of namespace %s is served: %v", edge, served), func() bool {
			in, ok := f.Snapshot().Ingresses.Get(snapshot.Key{Namespace: "shop", Name: "site"})
			reads := grants.Load()
			if !ok || reads == nil {
				return false
			}
			return (len(in.Status.LoadBalancer.Ingress) == 1) == served &&
				slices.ContainsFunc(*reads, func(g cluster.Grant) bool { return g.Namespace == "shop" && g.All }) == served &&
				slices.ContainsFunc(h.Problems(), func(p snapshot.Problem) bool { return p.Object.String() == "Ingress shop/site" }) == served
		})
	}
}

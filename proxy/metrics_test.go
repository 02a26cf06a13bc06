package proxy

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/route"
	"quayside.io/test/certificate"
)

// A scrape goes through 10,000 hosts without a list of them, so without putting them in
// order, and misses none.
func TestScrapeKeepsNoListOfHosts(t *testing.T) {
	const n = 10_000
	table := tableOfHosts(t, n)
	found, want := maps.Collect(expiries(table)), map[string]time.Time{}
	for host, list := range table.AllCertificates() {
		want[host] = endOf(list)
	}
	if len(want) <= n || !maps.EqualFunc(found, want, time.Time.Equal) {
		t.Errorf("%d hosts are found, want %d and that of no name as the %d in order", len(found), n, len(want))
	}
	if allocs := testing.AllocsPerRun(5, func() {
		for range expiries(table) {
		}
	}); allocs > 5 {
		t.Errorf("%v allocations", allocs)
	}
}

// BenchmarkScrape is what a scrape of 10,000 hosts with certificates costs.
func BenchmarkScrape(b *testing.B) {
	p := &Proxy{}
	p.table.Store(tableOfHosts(b, 10_000))
	m := newMetrics(p)
	b.ReportAllocs()
	for b.Loop() {
		ch := make(chan prometheus.Metric, 64)
		go func() {
			defer close(ch)
			m.Collect(ch)
		}()
		for range ch {
		}
	}
}

// tableOfHosts returns a table of n hosts and of that without a name, which have one
// certificate.
func tableOfHosts(t testing.TB, n int) *route.Table {
	t.Helper()
	class, prefix := ingressclass.DefaultName, networkingv1.PathTypePrefix
	meta := metav1.ObjectMeta{Namespace: "shops", Name: "shop"}
	ing := &networkingv1.Ingress{ObjectMeta: meta, Spec: networkingv1.IngressSpec{IngressClassName: &class, TLS: []networkingv1.IngressTLS{{SecretName: "tls"}, {SecretName: "tls"}}}}
	paths := &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: &prefix, Backend: networkingv1.IngressBackend{
		Service: &networkingv1.IngressServiceBackend{Name: meta.Name, Port: networkingv1.ServiceBackendPort{Number: 80}},
	}}}}
	for i := range n {
		host := fmt.Sprintf("h%d.shops.example", i)
		ing.Spec.TLS[1].Hosts = append(ing.Spec.TLS[1].Hosts, host)
		ing.Spec.Rules = append(ing.Spec.Rules, networkingv1.IngressRule{Host: host, IngressRuleValue: networkingv1.IngressRuleValue{HTTP: paths}})
	}
	c := snapshot.Of(&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
		ing, certificate.Secret(t, "shops/tls", time.Now().AddDate(0, 1, 0), "*.shops.example"))
	return route.Compile(c, nil, route.Options{})
}

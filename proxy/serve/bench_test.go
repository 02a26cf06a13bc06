package serve_test

import (
	"bytes"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/proxy/balance"
	"quayside.io/proxy/route"
	"quayside.io/proxy/serve"
	"quayside.io/proxy/upstream"
)

// answering is a backend, and a client, that allocate nothing: what is counted
// is the proxy's.
func answering(t testing.TB, answer []byte) string {
	return rawBackend(t, func(c net.Conn) {
		buf := make([]byte, 16<<10)
		for n := 0; ; {
			k, err := c.Read(buf[n:])
			if err != nil {
				return
			}
			if n += k; bytes.HasSuffix(buf[:n], []byte("\r\n\r\n")) {
				n = 0
				if _, err := c.Write(answer); err != nil {
					return
				}
			}
		}
	})
}

// client returns a function that makes one request through the proxy.
func client(t testing.TB, r *rig) func() {
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	req := []byte("GET /a/b?c=d HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: test\r\nAccept: */*\r\nAccept-Encoding: gzip\r\nCookie: a=b\r\n\r\n")
	buf := make([]byte, 64<<10)
	return func() {
		if _, err := c.Write(req); err != nil {
			t.Fatal(err)
		}
		for n := 0; ; {
			k, err := c.Read(buf[n:])
			if err != nil {
				t.Fatal(err)
			}
			if n += k; bytes.HasSuffix(buf[:n], []byte("xxxx")) {
				if !bytes.HasPrefix(buf[:n], []byte("HTTP/1.1 200")) {
					t.Fatalf("answered %q", buf[:n])
				}
				return
			}
		}
	}
}

var smallAnswer = []byte("HTTP/1.1 200 OK\r\nServer: x\r\nContent-Type: text/plain\r\nETag: \"a\"\r\nContent-Length: 100\r\n\r\n" + strings.Repeat("x", 100))

func BenchmarkProxy(b *testing.B) {
	r := newRig(b, serve.Options{}, upstream.Options{}, answering(b, smallAnswer))
	ask := client(b, r)
	b.ReportAllocs()
	for b.Loop() {
		ask()
	}
}

// withOptions gives an Ingress all cheap options at once: headers, CORS, limits,
// lists, rewrite, affinity.
func withOptions(ing *networkingv1.Ingress) {
	kind := networkingv1.PathTypeImplementationSpecific
	ing.Annotations = map[string]string{}
	for key, value := range map[string]string{
		"upstream-vhost": "inner.example", "x-forwarded-prefix": "/a", "enable-cors": "true", "cors-allow-origin": "https://*.shop.example",
		"limit-rps": "1000000", "limit-connections": "1000", "proxy-body-size": "8m",
		"whitelist-source-range": "127.0.0.0/8", "denylist-source-range": "10.6.6.0/24", "rewrite-target": "/$2", "affinity": "cookie",
	} {
		ing.Annotations[route.OwnPrefix+key] = value
	}
	ing.Spec.Rules = []networkingv1.IngressRule{{IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
		Paths: []networkingv1.HTTPIngressPath{{Path: "/a(/|$)(.*)", PathType: &kind, Backend: *ing.Spec.DefaultBackend}},
	}}}}
}

// endpointAt is one endpoint with a policy, which here gives every client a cookie.
func endpointAt(addr string, policy balance.Policy) *balance.Set {
	at := netip.MustParseAddrPort(addr)
	port := int32(at.Port())
	svc := &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	slice := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: &port}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{at.Addr().String()}}}}
	return balance.Compile(svc, []*discoveryv1.EndpointSlice{slice}, balance.PortRef{Number: 80}, "", "", balance.Options{AllowLoopback: true, Policy: policy})
}

// BenchmarkProxyOptions compares a request through the whole proxy, without options
// and with all cheap ones, by turns so that both meet the same machine. The goal is
// x-slower at most 1.5.
func BenchmarkProxyOptions(b *testing.B) {
	addr := answering(b, smallAnswer)
	bare, with := newRig(b, serve.Options{}, upstream.Options{}, addr), newRig(b, serve.Options{}, upstream.Options{}, addr)
	with.change = withOptions
	table := with.table()
	if len(table.Problems) > 0 {
		b.Fatal(table.Problems)
	}
	with.route(addr).SetEndpoints(endpointAt(addr, table.Backends[0].Policy))
	ask, askWith := client(b, bare), client(b, with)
	const batch = 20
	measure := func(ask func()) time.Duration {
		start := time.Now()
		for range batch {
			ask()
		}
		return time.Since(start)
	}
	var without, took []time.Duration
	for b.Loop() {
		without, took = append(without, measure(ask)), append(took, measure(askWith))
	}
	slices.Sort(without)
	slices.Sort(took)
	fast, slow := without[len(without)/2], took[len(took)/2]
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(fast.Nanoseconds())/batch, "ns/bare")
	b.ReportMetric(float64(slow.Nanoseconds())/batch, "ns/options")
	b.ReportMetric(float64(slow)/float64(fast), "x-slower")
}

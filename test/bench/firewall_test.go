package bench

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	objects "quayside.io/cluster"
	"quayside.io/proxy"
)

// BenchmarkFirewall is a request through the proxy and back, without a firewall, with
// one of one rule, and with the core rules.
func BenchmarkFirewall(b *testing.B) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, "a page")
	}))
	defer web.Close()
	rules := map[string]map[string]string{
		"off":  nil,
		"rule": {"enable-modsecurity": "true", "modsecurity-snippet": "SecRuleEngine On\nSecRule ARGS \"@contains evil\" \"id:1,phase:2,deny\""},
		"core": {"enable-modsecurity": "true", "modsecurity-snippet": "SecRuleEngine On\nSecRuleRemoveById 920350", "enable-owasp-core-rules": "true"},
	}
	addr := guarded(b, web.Listener.Addr().String(), rules)
	for _, name := range []string{"off", "rule", "core"} {
		for _, body := range []string{"", "comment=" + strings.Repeat("a fine boat ", 80)} {
			kind := "get"
			if body != "" {
				kind = "form-1KiB"
			}
			b.Run(name+"/"+kind, func(b *testing.B) {
				for b.Loop() {
					if status := visit(b, addr, name+".test", body); status != 200 {
						b.Fatalf("%s answers %d", name, status)
					}
				}
			})
		}
	}
}

// visit asks once as a browser does.
func visit(b *testing.B, addr, host, body string) int {
	req, err := http.NewRequest("GET", "http://"+addr+"/boats?page=2&sort=price", nil)
	if body != "" {
		req, err = http.NewRequest("POST", "http://"+addr+"/boats", strings.NewReader(body))
	}
	if err != nil {
		b.Fatal(err)
	}
	req.Host = host
	req.Header.Set("User-Agent", "Mozilla/5.0")
	req.Header.Set("Accept", "text/html")
	if body != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		b.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return resp.StatusCode
}

// guarded runs a proxy with an Ingress NAME.test for each set of options, and returns
// its address once all are in force.
func guarded(b *testing.B, web string, options map[string]map[string]string) string {
	files, err := objects.NewFiles(nil, nil, objects.FilesOptions{NodeName: "here"})
	if err != nil {
		b.Fatal(err)
	}
	o := proxy.Options{Source: files.Source, NodeName: "here", HTTP: "127.0.0.1:0", AllowLoopback: true}
	o.Routes.ModSecurity = true
	p, err := proxy.New(o)
	if err != nil {
		b.Fatal(err)
	}
	endpoint := netip.MustParseAddrPort(web)
	port, node, none := int32(endpoint.Port()), "here", ""
	files.Put(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
		&discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
			AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &none, Port: &port}},
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{endpoint.Addr().String()}, NodeName: &node}},
		})
	for name, annotations := range options {
		class := "quayside"
		ing := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: map[string]string{}}}
		for key, value := range annotations {
			ing.Annotations["nginx.ingress.kubernetes.io/"+key] = value
		}
		prefix := networkingv1.PathTypePrefix
		ing.Spec = networkingv1.IngressSpec{IngressClassName: &class, Rules: []networkingv1.IngressRule{{Host: name + ".test", IngressRuleValue: networkingv1.IngressRuleValue{
			HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: &prefix, Backend: networkingv1.IngressBackend{
				Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}}}}}}}}}}
		files.Put(ing)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 2)
	go func() { done <- files.Run(ctx) }()
	go func() { done <- p.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		<-done
		<-done
	})
	serves := func() bool { // all of them, with their rules
		st, _ := p.State().(proxy.State)
		return p.Ready() == nil && len(st.Routes) == len(options) && len(p.Problems()) == 0
	}
	for deadline := time.Now().Add(time.Minute); !serves(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			b.Fatal(p.Ready(), p.Problems())
		}
	}
	st, _ := p.State().(proxy.State)
	return st.Listeners[0].Bound
}

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/test/lab"
)

// The scenarios of the Ingress conformance suite of kubernetes-sigs, all 30
// cases, as manifests and tables of our own. A pod is named after the Service
// it stands behind, so "who answered" is the pod's name.

func conformance(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "conformance", file))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// ask is one case: a request, and who answers it.
type ask struct {
	name, method, url string
	status            int
	pod               string // "" where nobody should
}

// run sends every request to address, over HTTP/1.1 and over HTTP/2, and compares.
func (e edge) run(from *lab.Client, address string, asks []ask) {
	for _, a := range asks {
		e.once(from, a, "HTTP/1.1", lab.Via(address+":80"))
		a.name += " over HTTP2"
		a.url = strings.Replace(a.url, "http://", "https://", 1)
		e.once(from, a, "HTTP/2.0", lab.Via(address+":443"), lab.HTTP2())
	}
}

func (e edge) once(from *lab.Client, a ask, proto string, how ...lab.RequestOption) {
	e.t.Run(a.name, func(t *testing.T) {
		e := edge{e.With(t), t}
		resp := e.Client(from.Name()).Get(a.url, append(how, lab.Method(a.method, ""))...)
		if resp.Status != a.status || resp.Proto != proto {
			t.Fatalf("%s %s: status %d over %s, want %d over %s: %s", a.method, a.url, resp.Status, resp.Proto, a.status, proto, resp.Body)
		}
		if a.pod == "" {
			return
		}
		reply, err := resp.Reply()
		if err != nil {
			t.Fatal(err)
		}
		if reply.Pod != a.pod || reply.Method != a.method {
			t.Errorf("%s %s: pod %s saw %s, want pod %s", a.method, a.url, reply.Pod, reply.Method, a.pod)
		}
	})
}

// until waits for the first time that url is answered by pod: the Ingress's
// status is written by the controller, and the proxies follow on their own.
func (e edge) until(from *lab.Client, address, url, pod string) {
	e.t.Helper()
	e.Eventually(settle, func() error {
		resp, err := from.Try(url, lab.Via(address+":80"))
		if err != nil {
			return err
		}
		reply, err := resp.Reply()
		if err == nil && reply.Pod != pod {
			err = fmt.Errorf("%s answers %s, not %s", reply.Pod, url, pod)
		}
		return err
	})
}

func TestConformanceDefaultBackend(t *testing.T) {
	beside(t)
	e := quayside(t, "iptables")
	e.serve("echo-service")
	e.Apply(conformance(t, "default-backend.yaml"))
	defer e.Delete(conformance(t, "default-backend.yaml")) // it catches all, and so would the next test's
	address, laptop := e.ingressAddress("default-backend"), e.Client("laptop")
	e.until(laptop, address, "http://my-host/", "echo-service")
	asks := []ask{
		{"GET my-host", http.MethodGet, "http://my-host/", 200, "echo-service"},
		{"GET sub-path", http.MethodGet, "http://my-host/sub-path", 200, "echo-service"},
		{"POST some-host", http.MethodPost, "http://some-host/", 200, "echo-service"},
		{"PUT no host", http.MethodPut, "http://" + address + "/resource", 200, "echo-service"},
		{"DELETE some-host", http.MethodDelete, "http://some-host/resource", 200, "echo-service"},
		{"PATCH my-host", http.MethodPatch, "http://my-host/resource", 200, "echo-service"},
	}
	e.run(laptop, address, asks)

	for _, a := range asks {
		resp := laptop.Get(a.url, lab.Via(address+":80"), lab.Method(a.method, ""), lab.Header("User-Agent", "Go-http-client/1.1"))
		for _, name := range []string{"Content-Length", "Content-Type", "Date", "Server"} {
			if resp.Header.Get(name) == "" {
				t.Errorf("%s: the response has no %s", a.name, name)
			}
		}
		reply, err := resp.Reply()
		if err != nil {
			t.Fatal(err)
		}
		if resp.Proto != "HTTP/1.1" || reply.Proto != "HTTP/1.1" {
			t.Errorf("%s: %s to the client, %s to the pod, want HTTP/1.1 twice", a.name, resp.Proto, reply.Proto)
		}
		if got := reply.Headers.Get("User-Agent"); got != "Go-http-client/1.1" {
			t.Errorf("%s: the pod sees User-Agent %q", a.name, got)
		}
	}
}

func TestConformanceHostRules(t *testing.T) {
	beside(t)
	e := quayside(t, "iptables")
	e.serve("wildcard-foo-com", "foo-bar-com")
	roots := e.tlsSecret("conformance-tls", "foo.bar.com")
	e.Apply(conformance(t, "host-rules.yaml"))
	address, laptop := e.ingressAddress("host-rules"), e.Client("laptop")
	e.until(laptop, address, "http://foo.bar.com/", "foo-bar-com")
	t.Run("https foo.bar.com", func(t *testing.T) {
		var resp lab.Response
		e.With(t).Eventually(settle, func() (err error) { // the right to read the certificate may come after the route
			resp, err = e.With(t).Client("laptop").Try("https://foo.bar.com/", lab.Via(address+":443"), lab.TLS(verify(roots, "foo.bar.com")))
			return err
		})
		reply, err := resp.Reply()
		if err != nil || resp.Status != http.StatusOK {
			t.Fatalf("status %d: %v", resp.Status, err)
		}
		if reply.Pod != "foo-bar-com" || reply.Host != "foo.bar.com" {
			t.Errorf("pod %s saw Host %s, want foo-bar-com and foo.bar.com", reply.Pod, reply.Host)
		}
	})
	e.run(laptop, address, []ask{
		{"http foo.bar.com is not redirected", http.MethodGet, "http://foo.bar.com/", 200, "foo-bar-com"},
		{"a subdomain of bar.com", http.MethodGet, "http://subdomain.bar.com/", 404, ""},
		{"bar.foo.com", http.MethodGet, "http://bar.foo.com/", 200, "wildcard-foo-com"},
		{"two labels", http.MethodGet, "http://baz.bar.foo.com/", 404, ""},
		{"no label", http.MethodGet, "http://foo.com/", 404, ""},
	})
}

// An Ingress of a class that nobody serves gets no address. A valid one is
// applied after it, so that "not yet" cannot pass for "never".
func TestConformanceIngressClass(t *testing.T) {
	beside(t)
	e := quayside(t, "iptables")
	e.serve("echo-service")
	e.Apply(conformance(t, "ingress-class.yaml"))
	e.Apply(conformance(t, "load-balancing.yaml"))
	e.ingressAddress("load-balancing")
	i, err := e.Kube().NetworkingV1().Ingresses(e.Namespace()).Get(t.Context(), "ingress-class", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(i.Status.LoadBalancer.Ingress) != 0 {
		t.Errorf("an Ingress of some-invalid-class-name was given %v", i.Status.LoadBalancer.Ingress)
	}
}

func TestConformanceLoadBalancing(t *testing.T) {
	beside(t)
	e := quayside(t, "iptables")
	for i := range 10 {
		e.Pod(1+i%3, fmt.Sprintf("echo-%d", i), lab.Labels{"app": "echo-service"})
	}
	e.Apply(conformance(t, "load-balancing.yaml"))
	address, laptop := e.ingressAddress("load-balancing"), e.Client("laptop")
	e.Eventually(settle, func() error {
		resp, err := laptop.Try("http://load-balancing/", lab.Via(address+":80"))
		if err == nil {
			_, err = resp.Reply()
		}
		return err
	})
	e.Eventually(settle, func() error { // all ten pods have to be known first
		seen := map[string]bool{}
		for range 100 {
			resp := laptop.Get("http://load-balancing/", lab.Via(address+":80"))
			reply, err := resp.Reply()
			if err != nil || resp.Status != http.StatusOK {
				t.Fatalf("status %d: %v", resp.Status, err)
			}
			seen[reply.Pod] = true
		}
		if len(seen) != 10 {
			return fmt.Errorf("100 requests saw %d pods, want 10", len(seen))
		}
		return nil
	})
}

func TestConformancePathRules(t *testing.T) {
	beside(t)
	services := []string{"foo-exact", "foo-prefix", "aaa-slash-bbb-prefix", "aaa-prefix", "aaa-slash-bbb-slash-prefix", "foo-slash-exact"}
	e := quayside(t, "iptables")
	e.serve(services...)
	e.Apply(clusterIPServices(services...))
	e.Apply(conformance(t, "path-rules.yaml"))
	address, laptop := e.ingressAddress("path-rules"), e.Client("laptop")
	e.until(laptop, address, "http://trailing-slash-path-rules/foo/", "foo-slash-exact")
	get := func(name, url, pod string) ask {
		if pod == "" {
			return ask{name, http.MethodGet, "http://" + url, 404, ""}
		}
		return ask{name, http.MethodGet, "http://" + url, 200, pod}
	}
	e.run(laptop, address, []ask{
		get("exact is itself", "exact-path-rules/foo", "foo-exact"),
		get("exact has no trailing slash", "exact-path-rules/foo/", ""),
		get("exact minds case", "exact-path-rules/FOO", ""),
		get("exact is nothing else", "exact-path-rules/bar", ""),
		get("prefix is itself", "prefix-path-rules/foo", "foo-prefix"),
		get("prefix ignores a trailing slash", "prefix-path-rules/foo/", "foo-prefix"),
		get("prefix minds case", "prefix-path-rules/FOO", ""),
		get("the longest prefix", "prefix-path-rules/aaa/bbb", "aaa-slash-bbb-prefix"),
		get("the longest prefix, with more", "prefix-path-rules/aaa/bbb/ccc", "aaa-slash-bbb-prefix"),
		get("the shorter prefix", "prefix-path-rules/aaa/ccc", "aaa-prefix"),
		get("elements, not characters", "prefix-path-rules/aaaccc", ""),
		get("prefix among others", "prefix-path-rules/foo/", "foo-prefix"),
		get("exact beats prefix", "mixed-path-rules/foo", "foo-exact"),
		get("a prefix's trailing slash is ignored", "trailing-slash-path-rules/aaa/bbb", "aaa-slash-bbb-slash-prefix"),
		get("a prefix's trailing slash matches", "trailing-slash-path-rules/aaa/bbb/", "aaa-slash-bbb-slash-prefix"),
		get("an exact trailing slash is meant", "trailing-slash-path-rules/foo", ""),
	})
}

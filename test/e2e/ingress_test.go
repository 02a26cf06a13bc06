package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"quayside.io/test/lab"
)

// The Ingress objects of the field's textbook, as a user has them: they name no
// class, so the default one of the cluster is theirs. The third
// one, of extensions/v1beta1, exists in files only (see the tests of `up`).
const textbook = `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: by-path}
spec:
  rules:
  - http:
      paths:
      - path: /video
        pathType: Prefix
        backend: {service: {name: video, port: {number: 3000}}}
      - path: /store
        pathType: Prefix
        backend: {service: {name: store, port: {number: 3000}}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: by-host}
spec:
  rules:
  - host: video.example.com
    http:
      paths:
      - path: /
        pathType: Prefix
        backend: {service: {name: video, port: {number: 3000}}}
  - host: store.example.com
    http:
      paths:
      - path: /
        pathType: Prefix
        backend: {service: {name: store, port: {number: 3000}}}
`

func TestTextbookIngresses(t *testing.T) {
	beside(t)
	e := quayside(t, "iptables")
	e.serve("video", "store")
	e.Apply(clusterIPServices("video", "store"))
	e.Apply(textbook)
	address, laptop := e.ingressAddress("by-path"), e.Client("laptop")
	if second := e.ingressAddress("by-host"); second != address {
		t.Errorf("two Ingresses of one class are at %s and %s", address, second)
	}
	e.until(laptop, address, "http://store.example.com/", "store")
	e.run(laptop, address, []ask{
		{"/video on no host", http.MethodGet, "http://" + address + "/video/1", 200, "video"},
		{"/store on no host", http.MethodGet, "http://" + address + "/store", 200, "store"},
		{"neither", http.MethodGet, "http://" + address + "/else", 404, ""},
		{"video.example.com", http.MethodGet, "http://video.example.com/", 200, "video"},
		{"store.example.com", http.MethodGet, "http://store.example.com/x/y", 200, "store"},
	})
}

// ingressFor is an Ingress with one host, with its class as a field or an annotation.
func ingressFor(name, class, annotation, host, service string) string {
	return fmt.Sprintf(`
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: %s
  annotations: {%s}
spec:
  %s
  rules:
  - host: %s
    http:
      paths:
      - path: /
        pathType: Prefix
        backend: {service: {name: %s, port: {number: 3000}}}
`, name, annotation, class, host, service)
}

// Two controllers with two classes share a cluster, and each serves only its own.
func TestTwoControllersTwoClasses(t *testing.T) {
	beside(t)
	e := quayside(t, "iptables")
	e.serve("ours", "theirs")
	e.Apply(clusterIPServices("ours", "theirs"))
	e.Apply(`
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: elsewhere}
spec: {controller: example.com/another-controller}
`)
	e.Apply(ingressFor("theirs-by-class", "ingressClassName: elsewhere", "", "theirs.example.com", "theirs"))
	e.Apply(ingressFor("theirs-by-annotation", "", "kubernetes.io/ingress.class: nginx", "old.example.com", "theirs"))
	e.Apply(ingressFor("ours", "", "kubernetes.io/ingress.class: quayside", "ours.example.com", "ours"))
	address, laptop := e.ingressAddress("ours"), e.Client("laptop")
	e.until(laptop, address, "http://ours.example.com/", "ours")
	e.run(laptop, address, []ask{
		{"theirs by class", http.MethodGet, "http://theirs.example.com/", 404, ""},
		{"theirs by annotation", http.MethodGet, "http://old.example.com/", 404, ""},
	})
}

// Through the proxy's own Service, whose policy is Local, the pod behind an
// Ingress is told the client's own address, and a forged one is not believed.
func TestClientAddressReachesThePod(t *testing.T) {
	beside(t)
	withQuaysideInEachMode(t, func(t *testing.T, e edge) {
		e.serve("video", "store")
		e.Apply(clusterIPServices("video", "store"))
		e.Apply(textbook)
		address, laptop := e.ingressAddress("by-host"), e.Client("laptop")
		e.until(laptop, address, "http://video.example.com/", "video")
		reply := laptop.Reply("http://video.example.com/", lab.Via(address+":80"), lab.Header("X-Forwarded-For", "192.0.2.66"))
		for name, want := range map[string]string{
			"X-Forwarded-For": laptop.IP(), "X-Real-Ip": laptop.IP(),
			"X-Forwarded-Proto": "http", "X-Forwarded-Host": "video.example.com",
		} {
			if got := reply.Headers.Get(name); got != want {
				t.Errorf("the pod was told %s: %q, want %q", name, got, want)
			}
		}
		if reply.Headers.Get("X-Request-Id") == "" {
			t.Error("the pod was told no X-Request-ID")
		}
	})
}

// A backend Service with externalTrafficPolicy Local is reached only through
// endpoints of the proxy's own node.
func TestBackendOfLocalPolicyStaysOnTheNode(t *testing.T) {
	beside(t)
	e := quayside(t, "iptables")
	for n := 1; n <= 3; n++ {
		e.Pod(n, fmt.Sprintf("web-%d", n), lab.Labels{"app": "web"})
	}
	e.Apply(loadBalancer("Local"))
	e.Apply(`
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec:
  ingressClassName: quayside
  rules:
  - host: local.example.com
    http:
      paths:
      - path: /
        pathType: Prefix
        backend: {service: {name: web, port: {name: http}}}
`)
	address, laptop := e.ingressAddress("web"), e.Client("laptop")
	e.Eventually(settle, func() error {
		resp, err := laptop.Try("http://local.example.com/", lab.Via(address+":80"))
		if err == nil {
			_, err = resp.Reply()
		}
		return err
	})
	proxyNode := e.owner(laptop, address) // its Service is Local, so the node that answers runs the proxy
	for range 30 {
		reply := laptop.Reply("http://local.example.com/", lab.Via(address+":80"))
		if reply.Node != proxyNode.Name() {
			t.Fatalf("the proxy on %s sent a request to %s on %s", proxyNode.Name(), reply.Pod, reply.Node)
		}
	}
}

package proxy_test

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
	"quayside.io/proxy/route"
	"quayside.io/test/certificate"
)

// Whether HTTP/2 is offered is up to each host: the oldest Ingress that says anything
// decides, a younger one that says otherwise is told, and a connection that was made for
// another host does not get around it.
func TestHTTP2ByHost(t *testing.T) {
	files, p := start(t, func(o *proxy.Options) {
		o.HTTP2 = true
		o.Routes.ConfigMap = snapshot.Key{Namespace: "default", Name: "wide"}
	})
	hosts := []string{"plain.test", "off.test", "on.test", "shared.test", "later.test", "*.wild.test", "x.test"}
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", backend(t, "web")), configMap("wide"),
		certificate.Secret(t, "default/all", time.Now().Add(time.Hour), hosts...))
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	put := func(name, host, path, http2 string) {
		at = at.Add(time.Hour)
		ing := ingress(name, host, path, "web", number)
		ing.CreationTimestamp.Time = at
		ing.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{host}, SecretName: "all"}}
		if http2 != "" {
			ing.Annotations = map[string]string{"ingress.quayside.io/http2": http2}
		}
		files.Put(ing)
	}
	put("plain", "plain.test", "/", "")
	put("off", "off.test", "/", "false")
	put("on", "on.test", "/", "true")
	put("first", "shared.test", "/", "false")
	put("second", "shared.test", "/second", "true")
	put("silent", "later.test", "/", "")
	put("later", "later.test", "/later", "false")
	put("wild", "*.wild.test", "/", "false")
	put("odd", "x.test", "/", "perhaps")
	addr := bound(p, true)
	negotiated := func(host string) string {
		c, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, ServerName: host, NextProtos: []string{"h2", "http/1.1"}})
		if err != nil {
			return err.Error()
		}
		defer c.Close()
		return c.ConnectionState().NegotiatedProtocol
	}
	eventually(t, "the last of the Ingresses is served", func() bool { st, _ := p.State().(proxy.State); return len(st.Routes) == 9 })
	for _, wide := range []struct{ value, otherwise string }{{"true", "h2"}, {"false", "http/1.1"}} {
		t.Run("http2", func(t *testing.T) {
			files.Put(configMap("wide", "use-http2", wide.value))
			eventually(t, "the ConfigMap is obeyed", func() bool { return negotiated("plain.test") == wide.otherwise })
			for host, want := range map[string]string{
				"plain.test": wide.otherwise, "x.test": wide.otherwise, "nobody.test": wide.otherwise, "": wide.otherwise,
				"on.test": "h2", "off.test": "http/1.1", "shared.test": "http/1.1", "later.test": "http/1.1", "any.wild.test": "http/1.1",
			} {
				if got := negotiated(host); got != want {
					t.Errorf("use-http2 %s: for %q %s is negotiated, want %s", wide.value, host, got, want)
				}
			}
		})
	}
	files.Put(configMap("wide"))
	eventually(t, "HTTP/2 is offered again", func() bool { return negotiated("plain.test") == "h2" })
	tr := clientOf(t, addr, true, nil)
	for host, want := range map[string]int{"plain.test": 200, "on.test": 200, "off.test": 421, "any.wild.test": 421} {
		if status, said := by(t, tr, "plain.test", host, "/"); status != want {
			t.Errorf("%s over a connection of HTTP/2 for another host: %d %s, want %d", host, status, said, want)
		}
	}
	for _, tr := range []*http.Transport{clientOf(t, addr, true, nil), clientOf(t, addr, false, nil)} {
		if status, said := by(t, tr, "off.test", "off.test", "/"); status != 200 {
			t.Errorf("off.test by itself: %d %s", status, said)
		}
	}
	said := map[string]string{}
	for _, problem := range p.Problems() {
		said[problem.Object.Key.Name] += problem.Reason + ": " + problem.Message
	}
	if len(said) != 2 || !strings.HasPrefix(said["second"], route.HTTP2Unused+": ") || !strings.HasPrefix(said["odd"], route.InvalidAnnotation+": ") {
		t.Errorf("the problems are %q", said)
	}
}

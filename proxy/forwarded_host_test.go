package proxy_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestForwardedHost: a trusted proxy says which host backends are asked for, and not which Ingress
// a request is for, nor where a rewrite of it leads.
func TestForwardedHost(t *testing.T) {
	files, p := start(t, trusting)
	files.Put(service("in", corev1.ServicePort{Port: 80}), slice("in", "", echo(t, "in")), service("out", corev1.ServicePort{Port: 80}), slice("out", "", echo(t, "out")),
		ingress("in", "in.test", "/new", "in", number), ingress("out", "out.test", "/", "out", number),
		annotated("old", "in.test", map[string]string{"path": "/old", "service": "out", "configuration-snippet": "rewrite ^/old(.*) /new$1 last;"}),
		annotated("kept", "kept.test", map[string]string{"service": "in", "upstream-vhost": "$host"}))
	addr := bound(p, false)
	for _, c := range []struct{ host, request, says string }{
		{"in.test", "/new\nX-Forwarded-Host: out.test", "in uri=/new host=out.test"},
		{"in.test", "/old/x\nX-Forwarded-Host: out.test", "in uri=/new/x host=out.test"},
		{"kept.test", "/\nX-Forwarded-Host: out.test", "in uri=/ host=kept.test"},
		{"in.test", "/new\nX-Forwarded-Host: out.test\nfrom 127.0.0.2", "in uri=/new host=in.test"},
	} {
		eventually(t, c.host+" is served", func() bool { status, _ := ask(t, addr, c.host, c.request); return status == 200 })
		if _, said := ask(t, addr, c.host, c.request); !strings.Contains(said, c.says) {
			t.Errorf("%s %q: %s, want %s", c.host, c.request, said, c.says)
		}
	}
}

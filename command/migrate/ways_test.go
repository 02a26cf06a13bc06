package migrate

import (
	"strings"
	"testing"

	"quayside.io/proxy/route"
)

// Whether everybody is sent to https is said by the ConfigMap of ingress-nginx, which is known by
// the names that its chart and its manifests have given it.
func TestRedirectsAsTheConfigMapSays(t *testing.T) {
	const site = `
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: site, namespace: shop}
spec:
  ingressClassName: nginx
  tls: [{hosts: [shop.example], secretName: shop}]
  rules: [{host: shop.example, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]
`
	for _, c := range []struct {
		options, redirect, note string
	}{
		{"", "true", ""},
		{`{name: ingress-nginx-controller, labels: {app.kubernetes.io/name: ingress-nginx}}, data: {ssl-redirect: "false"}`, "", `says ssl-redirect: "false"`},
		{`{name: edge-controller, labels: {app.kubernetes.io/name: ingress-nginx}}, data: {ssl-redirect: "0"}`, "", `says ssl-redirect: "false"`},
		{`{name: nginx-configuration}, data: {ssl-redirect: "false"}`, "", `says ssl-redirect: "false"`},
		{`{name: nginx-configuration}, data: {ssl-redirect: "off"}`, "true", ""},
		{`{name: nginx-configuration}, data: {ssl-redirect: "true"}`, "true", ""},
		{`{name: nginx-configuration}`, "true", ""},
		{`{name: ingress-nginx-controller}, data: {ssl-redirect: "false"}`, "true", ""},
		{`{name: options, labels: {app.kubernetes.io/name: ingress-nginx}}, data: {ssl-redirect: "false"}`, "true", ""},
		{`{name: nginx-configuration}, data: {no-auth-locations: /health}`, "true", "no-auth-locations: in a class of our own that is about the paths of requests"},
		{`{name: nginx-configuration}, data: {no-tls-redirect-locations: /health}`, "true", "no-tls-redirect-locations: in a class"},
	} {
		text := site
		if c.options != "" {
			text = "{apiVersion: v1, kind: ConfigMap, metadata: " + c.options + "}" + site
		}
		for _, only := range []string{"", Ingresses} {
			m := Migration{Only: only}
			if err := m.Read("all.yaml", []byte(text)); err != nil {
				t.Fatal(err)
			}
			r := m.Result()
			if got := r.Objects[0].Metadata.Annotations[route.OwnPrefix+"ssl-redirect"]; got != c.redirect {
				t.Errorf("%s: ssl-redirect is %q, want %q", c.options, got, c.redirect)
			}
			told := strings.Join(r.Notes, "\n")
			if c.note != "" && !strings.Contains(told, c.note) {
				t.Errorf("%s: the notes are\n%s\nwant one that has %q", c.options, told, c.note)
			}
			if c.note == "" && (strings.Contains(told, " says ssl-redirect") || strings.Contains(told, " says no-")) {
				t.Errorf("%s: the notes are\n%s\nwant none of that ConfigMap", c.options, told)
			}
		}
	}
	var m Migration
	if err := m.Read("bad.yaml", []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: nginx-configuration}, data: []}")); err == nil {
		t.Error("a ConfigMap whose data are a list is read")
	}
}

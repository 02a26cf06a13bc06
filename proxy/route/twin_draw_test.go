package route_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/route"
	"quayside.io/test/certificate"
)

// The vocabulary of the random clusters is small, so that objects meet.
func hosts() []string { return []string{"", "a.test", "b.a.test", "*.a.test", "*.test", "c.a.test"} }

func askers() []string {
	return append(hosts(), "x.test", "also.test", "x.y.test", "B.A.Test.:80", "[::1]:80")
}

func paths() []string {
	return []string{"/", "/a", "/a/", "/a/b", "/a/b/", "/ab", "/A", "/a//b", "/a%2fb", "/a/%62/c"}
}

// secrets are made once: keys are slow to draw.
func secrets(t testing.TB) []*corev1.Secret {
	return []*corev1.Secret{
		certificate.Secret(t, "n/one", now.AddDate(0, 1, 0), "a.test", "*.a.test"),
		certificate.Secret(t, "n/two", now.AddDate(0, 2, 0), "*.test"),
		certificate.Secret(t, "n/one", now.AddDate(0, 3, 0), "b.a.test"),
		{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "two"}},
	}
}

func drawIngress(t *rapid.T) *networkingv1.Ingress {
	ing := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{
		Namespace: "n", Name: rapid.SampledFrom([]string{"i", "j", "k", "l"}).Draw(t, "name"),
		CreationTimestamp: metav1.NewTime(now.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "age")) * time.Hour)),
		Annotations:       map[string]string{},
	}}
	if class := rapid.SampledFrom([]string{"quayside", "quayside", "nginx", "other", ""}).Draw(t, "class"); class != "" {
		ing.Spec.IngressClassName = &class
	}
	for _, row := range [][]string{ // in order, or rapid could not draw the same again
		{"ingress.quayside.io/force-ssl-redirect", "", "", "true"},
		{"nginx.ingress.kubernetes.io/auth-url", "", "", "", "//auth"},
		{"nginx.ingress.kubernetes.io/canary", "", "", "", "", "true"},
		{"nginx.ingress.kubernetes.io/enable-modsecurity", "", "", "true"},
		{"nginx.ingress.kubernetes.io/ssl-redirect", "", "true", "false"},
	} {
		if v := rapid.SampledFrom(row[1:]).Draw(t, row[0]); v != "" {
			ing.Annotations[row[0]] = v
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "default") == 0 {
		b := drawBackend(t)
		ing.Spec.DefaultBackend = &b
	}
	for range rapid.IntRange(0, 3).Draw(t, "rules") {
		rule := networkingv1.IngressRule{Host: rapid.SampledFrom(hosts()).Draw(t, "host")}
		if n := rapid.IntRange(0, 4).Draw(t, "paths"); n > 0 {
			rule.HTTP = &networkingv1.HTTPIngressRuleValue{}
			for range n {
				pathType := rapid.SampledFrom([]networkingv1.PathType{"Exact", "Prefix", "ImplementationSpecific"}).Draw(t, "type")
				rule.HTTP.Paths = append(rule.HTTP.Paths, networkingv1.HTTPIngressPath{
					Path: rapid.SampledFrom(paths()).Draw(t, "path"), PathType: &pathType, Backend: drawBackend(t),
				})
			}
		}
		ing.Spec.Rules = append(ing.Spec.Rules, rule)
	}
	for range rapid.IntRange(0, 2).Draw(t, "tls") {
		entry := networkingv1.IngressTLS{SecretName: rapid.SampledFrom([]string{"", "one", "two", "missing"}).Draw(t, "secret")}
		entry.Hosts = rapid.SliceOfN(rapid.SampledFrom(hosts()[1:]), 0, 2).Draw(t, "tls hosts")
		ing.Spec.TLS = append(ing.Spec.TLS, entry)
	}
	return ing
}

func drawBackend(t *rapid.T) networkingv1.IngressBackend {
	return networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
		Name: rapid.SampledFrom([]string{"s", "t", "u"}).Draw(t, "service"),
		Port: networkingv1.ServiceBackendPort{Number: rapid.SampledFrom([]int32{80, 81}).Draw(t, "port")},
	}}
}

func drawService(t *rapid.T) *corev1.Service {
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: rapid.SampledFrom([]string{"s", "t", "u"}).Draw(t, "service")}}
	for _, port := range rapid.SliceOfNDistinct(rapid.SampledFrom([]int32{80, 81}), 0, 2, rapid.ID).Draw(t, "ports") {
		svc.Spec.Ports = append(svc.Spec.Ports, corev1.ServicePort{Port: port})
	}
	return svc
}

func nginxClass() *networkingv1.IngressClass {
	return &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "nginx"}, Spec: networkingv1.IngressClassSpec{Controller: "k8s.io/ingress-nginx"}}
}

func adopting() route.Options {
	return route.Options{Classes: ingressclass.Rules{Adopt: []string{ingressclass.NginxController}}, Now: now}
}

func change(t *rapid.T, c *snapshot.Cluster, drawn []*corev1.Secret, opts *route.Options) *snapshot.Cluster {
	switch rapid.IntRange(0, 10).Draw(t, "kind") {
	case 0, 1, 2, 3:
		ing := drawIngress(t)
		for _, row := range [][]string{ // which the linear scan does not know
			{"nginx.ingress.kubernetes.io/server-alias", "", "", "", "also.test", "b.a.test", "also.test,x.test"},
			{"nginx.ingress.kubernetes.io/app-root", "", "", "", "/a"},
			{"nginx.ingress.kubernetes.io/whitelist-source-range", "", "", "10.0.0.0/8"},
			{"nginx.ingress.kubernetes.io/server-snippet", "", "", "", "", "if ($arg_a) { return 410; }", "allow 10.0.0.0/8; deny all; add_header X-A a;",
				"location = /a/b { return 200 b; }", "set $x 1; location /c { proxy_pass http://t.n.svc.cluster.local:80; }", "location /a { deny all; }"},
		} {
			if v := rapid.SampledFrom(row[1:]).Draw(t, row[0]); v != "" {
				ing.Annotations[row[0]] = v
			}
		}
		return c.With(ing)
	case 4:
		return c.Without(snapshot.Ingress, snapshot.Key{Namespace: "n", Name: rapid.SampledFrom([]string{"i", "j", "k", "l"}).Draw(t, "gone")})
	case 5:
		return c.With(drawService(t))
	case 6:
		return c.Without(snapshot.Service, snapshot.Key{Namespace: "n", Name: rapid.SampledFrom([]string{"s", "t", "u"}).Draw(t, "gone")})
	case 7:
		return c.With(rapid.SampledFrom(drawn).Draw(t, "secret").DeepCopy())
	case 8:
		if rapid.Bool().Draw(t, "class or secret") {
			return c.Without(snapshot.IngressClass, snapshot.Key{Name: "nginx"})
		}
		opts.DefaultCertificate = snapshot.Key{Namespace: "n", Name: rapid.SampledFrom([]string{"one", "two", "missing"}).Draw(t, "default")}
		return c.Without(snapshot.Secret, snapshot.Key{Namespace: "n", Name: "one"})
	case 9:
		return changeNamespace(t, c, opts)
	}
	if rapid.IntRange(0, 3).Draw(t, "option") == 0 {
		opts.Classes.Adopt = rapid.SliceOfDistinct(rapid.SampledFrom([]string{ingressclass.NginxController, ingressclass.Controller}), rapid.ID).Draw(t, "adopted")
		return c
	}
	opts.Now = opts.Now.Add(time.Duration(rapid.IntRange(0, 40*24).Draw(t, "hours")) * time.Hour)
	return c
}

// changeNamespace labels the namespace, takes it away, or changes what is asked of it.
func changeNamespace(t *rapid.T, c *snapshot.Cluster, opts *route.Options) *snapshot.Cluster {
	if rapid.Bool().Draw(t, "selector") {
		opts.Classes.Namespaces = rapid.SampledFrom([]labels.Selector{nil, labels.SelectorFromSet(labels.Set{"edge": "a"}), labels.Nothing()}).Draw(t, "selects")
		return c
	}
	label := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "label")
	if label == "" {
		return c.Without(snapshot.Namespace, snapshot.Key{Name: "n"})
	}
	return c.With(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"edge": label}}})
}

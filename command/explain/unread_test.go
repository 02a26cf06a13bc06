package explain

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/route"
)

// site is an Ingress with a certificate, to whose annotations more may be added.
func site(annotations map[string]string) *networkingv1.Ingress {
	class, prefix := "quayside", networkingv1.PathTypePrefix
	return &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "site", Annotations: annotations},
		Spec: networkingv1.IngressSpec{
			IngressClassName: &class,
			TLS:              []networkingv1.IngressTLS{{Hosts: []string{"shop.example.com", "*.shop.example.com"}, SecretName: "tls"}},
			Rules: []networkingv1.IngressRule{{Host: "shop.example.com", IngressRuleValue: networkingv1.IngressRuleValue{
				HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{
					Path: "/", PathType: &prefix, Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
						Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}}},
				}}},
			}}},
		},
	}
}

// What this account may not read is neither missing nor in order: status says so
// once for each kind, trace at the links that rest on it, and all else is judged.
func TestUnreadIsToldAndTheRestJudged(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	closed := site(map[string]string{route.OwnPrefix + "auth-type": "basic", route.OwnPrefix + "auth-secret": "users"})
	web := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	for name, c := range map[string]struct {
		world    *snapshot.Cluster
		problems []string         // "Reason Kind key", of routes
		links    map[string]State // of https://shop.example.com/
	}{
		"nothing is guarded": {snapshot.Unread().With(site(nil), web),
			[]string{"UnreadReference Secret shop/tls"},
			map[string]State{"certificate": Unknown, "route": Works, "backend": Broken}},
		"the route is guarded": {snapshot.Unread().With(closed, web),
			[]string{"UnreadReference Secret shop/tls"},
			map[string]State{"certificate": Unknown, "route": Unknown}},
		"and its Service is missing, which is seen": {snapshot.Unread().With(closed),
			[]string{"MissingService Ingress shop/site", "UnreadReference Secret shop/tls"},
			map[string]State{"certificate": Unknown, "route": Broken}},
		"one of two may be read, and is missing": {snapshot.Unread().With(closed, web).WithReach(snapshot.Secret, snapshot.Key{Namespace: "shop", Name: "users"}),
			[]string{"RouteClosed Ingress shop/site", "UnreadReference Secret shop/tls"},
			map[string]State{"certificate": Unknown, "route": Broken}},
		"all may be read": {snapshot.Of(site(nil), web),
			[]string{"MissingSecret Ingress shop/site"},
			map[string]State{"certificate": Broken, "route": Works, "backend": Broken}},
	} {
		t.Run(name, func(t *testing.T) {
			scene := sceneOf(c.world, now, false, false)
			var got []string
			for _, p := range Status(scene).Problems {
				got = append(got, p.Reason+" "+p.Object)
			}
			if slices.Sort(got); !slices.Equal(got, c.problems) {
				t.Errorf("status: %q, want %q", got, c.problems)
			}
			for _, host := range []string{"shop.example.com", "www.shop.example.com"} {
				to, err := ParseTarget("https://" + host + "/")
				if err != nil {
					t.Fatal(err)
				}
				for _, l := range Trace(scene, to).Links {
					want, ok := c.links[l.Name]
					if ok && l.State != want && host == "shop.example.com" {
						t.Errorf("trace: %+v, want %s", l, want)
					}
					if l.State == Unknown && !strings.Contains(l.Says, "could not be read by this account") {
						t.Errorf("trace: %+v does not say why", l)
					}
				}
			}
		})
	}
}

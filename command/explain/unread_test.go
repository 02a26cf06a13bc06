package explain

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/ingressclass"
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

// secretive is a cluster of which all but Secrets and ConfigMaps is read.
func secretive(objects ...snapshot.Object) *snapshot.Cluster {
	c := snapshot.Unread()
	for kind := range snapshot.Kinds() {
		if kind != snapshot.Secret && kind != snapshot.ConfigMap {
			c = c.WithReach(kind, snapshot.Key{})
		}
	}
	return c.With(objects...)
}

// Who may read nothing of a kind is not told that an object of it is missing.
func TestNothingUnreadIsMissing(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	web := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}}, ExternalIPs: []string{"192.0.2.7"}}}
	all, of := secretive(site(nil), web), func(kind snapshot.Kind, objects ...snapshot.Object) *snapshot.Cluster {
		return secretive(objects...).WithoutReach(kind, snapshot.Key{})
	}
	for name, c := range map[string]struct {
		target, link string
		seen, unseen *snapshot.Cluster
	}{
		"Service":              {"service/shop/gone", "service", all, of(snapshot.Service, site(nil))},
		"holder of an address": {"192.0.2.8", "address", all, of(snapshot.Service, site(nil))},
		"Ingress":              {"http://gone.example.com/", "route", all, of(snapshot.Ingress, web)},
		"IngressClass":         {"http://gone.example.com/", "route", all, of(snapshot.IngressClass, site(nil), web)},
		"backend":              {"http://shop.example.com/", "route", secretive(site(nil)), of(snapshot.Service, site(nil))},
		"pods behind a route":  {"http://shop.example.com/", "backend", all, of(snapshot.EndpointSlice, site(nil), web)},
		"pods":                 {"service/shop/web", "endpoints", all, of(snapshot.EndpointSlice, web)},
		"speakers":             {"service/shop/web", "announced", all, of(snapshot.SpeakerStatus, web)},
	} {
		t.Run(name, func(t *testing.T) {
			to, err := ParseTarget(c.target)
			if err != nil {
				t.Fatal(err)
			}
			for want, world := range map[State]*snapshot.Cluster{Broken: c.seen, Unknown: c.unseen} {
				links := Trace(inputsOf(world, now, false, false), to).Links
				i := slices.IndexFunc(links, func(l Link) bool { return l.Name == c.link })
				if i < 0 || links[i].State != want {
					t.Errorf("want %s at %q: %+v", want, c.link, links)
				} else if want == Unknown && !strings.Contains(links[i].Says, "could not be read by this account") {
					t.Errorf("why is not said: %+v", links[i])
				}
			}
		})
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
		"nothing is guarded": {secretive(site(nil), web),
			[]string{"UnreadReference Secret shop/tls"},
			map[string]State{"certificate": Unknown, "route": Works, "backend": Broken}},
		"the route is guarded": {secretive(closed, web),
			[]string{"UnreadReference Secret shop/tls"},
			map[string]State{"certificate": Unknown, "route": Unknown}},
		"and its Service is missing, which is seen": {secretive(closed),
			[]string{"MissingService Ingress shop/site", "UnreadReference Secret shop/tls"},
			map[string]State{"certificate": Unknown, "route": Broken}},
		"one of two may be read, and is missing": {secretive(closed, web).WithReach(snapshot.Secret, snapshot.Key{Namespace: "shop", Name: "users"}),
			[]string{"RouteClosed Ingress shop/site", "UnreadReference Secret shop/tls"},
			map[string]State{"certificate": Unknown, "route": Broken}},
		"all may be read": {snapshot.Of(site(nil), web),
			[]string{"MissingSecret Ingress shop/site"},
			map[string]State{"certificate": Broken, "route": Works, "backend": Broken}},
	} {
		t.Run(name, func(t *testing.T) {
			inputs := inputsOf(c.world, now, false, false)
			var got []string
			for _, p := range Status(inputs).Problems {
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
				for _, l := range Trace(inputs, to).Links {
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

// In an adopted class an entry of spec.tls is for all hosts of the rules, so the certificate of
// one that it does not name may be in the Secret, too.
func TestAnUnreadCertificateMayBeForEveryRule(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	adopted := &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "nginx"}, Spec: networkingv1.IngressClassSpec{Controller: ingressclass.NginxController}}
	for class, want := range map[string]State{"nginx": Unknown, "quayside": Broken} {
		ing := site(nil)
		other := ing.Spec.Rules[0]
		other.Host = "other.example.com"
		ing.Spec.IngressClassName, ing.Spec.Rules = &class, append(ing.Spec.Rules, other)
		s := inputsOf(secretive(ing, adopted), now, false, false)
		s.Routes = route.Compile(s.Cluster, nil, route.Options{Now: now, Classes: ingressclass.Rules{Adopt: []string{ingressclass.NginxController}}})
		to, err := ParseTarget("https://other.example.com/")
		if err != nil {
			t.Fatal(err)
		}
		links := Trace(s, to).Links
		if i := slices.IndexFunc(links, func(l Link) bool { return l.Name == "certificate" }); i < 0 || links[i].State != want {
			t.Errorf("class %s: want %s at the certificate: %+v", class, want, links)
		}
	}
}

package controller

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"quayside.io/cluster"
	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/route"
)

func ingress(namespace, class string, annotations map[string]string, secrets ...string) *networkingv1.Ingress {
	i := &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "site", Annotations: annotations},
		Spec:       networkingv1.IngressSpec{IngressClassName: &class, Rules: []networkingv1.IngressRule{{Host: namespace + ".example.com"}}},
	}
	for _, name := range secrets {
		i.Spec.TLS = append(i.Spec.TLS, networkingv1.IngressTLS{Hosts: []string{namespace + ".example.com"}, SecretName: name})
	}
	return i
}

// An Ingress whose Secrets cannot be given to the proxies says so, and no other does.
func TestWhatIsNotGrantedIsToldOnTheIngress(t *testing.T) {
	c := snapshot.Unread().With(ingress("shop", "quayside", nil, "tls"), ingress("plain", "quayside", nil, "tls"))
	theirs := ingress("shop", "nginx", nil, "tls")
	theirs.Name = "theirs"
	c = c.With(theirs)
	refused := map[string]string{"shop": "role shop/references is not ours"}
	got := (&GrantOptions{}).problems(c, ingressclass.Rules{}, route.Compile(c, nil, route.Options{}), refused)
	if len(got) != 1 || got[0].Object.String() != "Ingress shop/site" || got[0].Reason != reasonNotGranted || !strings.HasSuffix(got[0].Message, ": role shop/references is not ours") {
		t.Errorf("told: %v", got)
	}
}

// What the proxies are given is what they serve: no namespace of another class, in
// Quayside's own only what is named, and the gossip key never.
func TestGrantsFollowTheIngresses(t *testing.T) {
	c := snapshot.Unread().With(
		ingress("shop", "quayside", nil, "tls", "tls"),
		ingress("plain", "quayside", nil),
		ingress("guarded", "quayside", map[string]string{
			route.OwnPrefix + "auth-type": "basic", route.OwnPrefix + "auth-secret": "users", route.OwnPrefix + "custom-headers": "headers"}),
		ingress("foreign", "nginx", nil, "tls"),
		ingress("system", "quayside", nil, "named", "members"),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"edge": "public"}}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "plain"}},
	)
	key := func(namespace, name string) snapshot.Key { return snapshot.Key{Namespace: namespace, Name: name} }
	options := route.Options{DefaultCertificate: key("certs", "default"), ConfigMap: key("system", "options")}
	byName := []cluster.Grant{
		{Namespace: "certs", Secrets: []string{"default"}},
		{Namespace: "guarded", Secrets: []string{"users"}, ConfigMaps: []string{"headers"}},
		{Namespace: "shop", Secrets: []string{"tls"}},
		{Namespace: "system", Secrets: []string{"named"}, ConfigMaps: []string{"options"}},
	}
	for name, of := range map[string]struct {
		byName bool
		rules  ingressclass.Rules
		want   []cluster.Grant
	}{
		"by namespace": {false, ingressclass.Rules{}, []cluster.Grant{
			byName[0], {Namespace: "guarded", All: true}, {Namespace: "plain", All: true}, {Namespace: "shop", All: true}, byName[3]}},
		"by name":          {true, ingressclass.Rules{}, byName},
		"of one namespace": {false, ingressclass.Rules{Namespace: "shop"}, []cluster.Grant{{Namespace: "shop", All: true}}},
		// What the operator names is read wherever it is.
		"of namespaces by label": {false, ingressclass.Rules{Namespaces: labels.SelectorFromSet(labels.Set{"edge": "public"})}, []cluster.Grant{
			byName[0], {Namespace: "shop", All: true}, {Namespace: "system", ConfigMaps: []string{"options"}}}},
		"of one namespace and class": {true, ingressclass.Rules{Namespace: "foreign"}, nil},
	} {
		o := GrantOptions{ByName: of.byName, Own: "system", Never: func(k snapshot.Key) bool { return k == key("system", "members") }}
		options.Classes = of.rules
		if diff := cmp.Diff(of.want, o.compile(c, of.rules, route.Compile(c, nil, options))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Who names a Secret of ours, for TLS or in an option, is told that he has not got it; the
// operator, who names it as an option of the proxies, has.
func TestWhatIsOursIsNeverGranted(t *testing.T) {
	members := snapshot.Key{Namespace: "system", Name: "members"}
	users := ingress("system", "quayside", map[string]string{
		route.OwnPrefix + "auth-type": "basic", route.OwnPrefix + "auth-secret": "members"})
	users.Name = "users"
	c := snapshot.Unread().With(ingress("system", "quayside", nil, "members", "tls"), users, ingress("shop", "quayside", nil, "members"))
	o := GrantOptions{ByName: true, Own: "system", Never: func(k snapshot.Key) bool { return k == members }}
	for _, of := range []struct {
		name    string
		options route.Options
		told    []string
		given   []string
	}{
		{"named by Ingresses", route.Options{}, []string{"Ingress system/site", "Ingress system/users"}, []string{"tls"}},
		{"named by the operator", route.Options{DefaultCertificate: members}, nil, []string{"members", "tls"}},
	} {
		table := route.Compile(c, nil, of.options)
		var told []string
		for _, p := range o.problems(c, of.options.Classes, table, nil) {
			if p.Reason != reasonNotGranted || !strings.Contains(p.Message, "Secret system/members belongs to Quayside") {
				t.Errorf("%s: %v", of.name, p)
			}
			told = append(told, p.Object.String())
		}
		if diff := cmp.Diff(of.told, told); diff != "" {
			t.Errorf("%s: told (-want +got):\n%s", of.name, diff)
		}
		want := []cluster.Grant{{Namespace: "shop", Secrets: []string{"members"}}, {Namespace: "system", Secrets: of.given}}
		if diff := cmp.Diff(want, o.compile(c, of.options.Classes, table)); diff != "" {
			t.Errorf("%s: granted (-want +got):\n%s", of.name, diff)
		}
	}
}

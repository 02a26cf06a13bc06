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

// refuser grants nothing of one namespace.
type refuser struct{ Granter }

func (refuser) Refused() map[string]string {
	return map[string]string{"shop": "role shop/references is not ours"}
}

// An Ingress whose Secrets cannot be given to the proxies says so, and no other does.
func TestWhatIsNotGrantedIsToldOnTheIngress(t *testing.T) {
	c := snapshot.Unread().With(ingress("shop", "quayside", nil, "tls"), ingress("plain", "quayside", nil, "tls"))
	theirs := ingress("shop", "nginx", nil, "tls")
	theirs.Name = "theirs"
	o := GrantOptions{To: refuser{}}
	got := o.problems(c.With(theirs), ingressclass.Rules{})
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
		o := GrantOptions{ByName: of.byName, Own: "system", Never: []snapshot.Key{key("system", "members")}}
		options.Classes = of.rules
		if diff := cmp.Diff(of.want, o.compile(c, of.rules, route.Compile(c, nil, options))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

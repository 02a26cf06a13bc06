package explain

import (
	"bytes"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/controller/assign"
	"quayside.io/proxy/route"
)

// Why an Ingress is left out for the sake of its namespace is said, unless nobody
// here can read what the labels are.
func TestWhyANamespaceIsNotServed(t *testing.T) {
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"edge": "private"}}}
	web := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	byLabel := ingressclass.Rules{Namespaces: labels.SelectorFromSet(labels.Set{"edge": "public"})}
	for name, c := range map[string]struct {
		cluster *snapshot.Cluster
		rules   ingressclass.Rules
		state   State  // of the link "route"
		says    string // in it
		status  string // says so, too
	}{
		"by label": {secretive(site(nil), web, space), byLabel, Broken,
			"Ingress shop/site (namespace shop does not match --watch-namespace-selector, edge=public), which is not served here", "namespace shop "},
		"by name": {secretive(site(nil), web), ingressclass.Rules{Namespace: "bank"}, Broken,
			"Ingress shop/site (namespace shop is not that of --watch-namespace, bank), which is not served here", "namespace shop "},
		"by class": {secretive(site(nil), web), ingressclass.Rules{Name: "bank"}, Broken,
			`Ingress shop/site (class "quayside", which does not exist), which is not served here; write ingressClassName: bank, or adopt the class`, "class quayside is none of ours"},
		"labels that cannot be read": {secretive(site(nil), web).WithoutReach(snapshot.Namespace, snapshot.Key{}), byLabel, Unknown,
			"host shop.example.com: objects of kind Namespace could not be read by this account", ""},
	} {
		inputs := Inputs{Cluster: c.cluster, Assign: assign.Options{Classes: c.rules}, Routes: route.Compile(c.cluster, nil, route.Options{Classes: c.rules})}
		target, err := ParseTarget("http://shop.example.com/")
		if err != nil {
			t.Fatal(err)
		}
		path := Trace(inputs, target)
		if len(path.Links) != 1 || path.Links[0].State != c.state || !strings.Contains(path.Links[0].Says, c.says) {
			t.Errorf("%s: %+v, want %s with %q", name, path.Links, c.state, c.says)
		}
		var screen bytes.Buffer
		if err := Status(inputs).WriteText(&screen); err != nil {
			t.Fatal(err)
		}
		_, says, told := strings.Cut(screen.String(), "none, not served here: ")
		if told != (c.status != "") || !strings.HasPrefix(says, c.status) {
			t.Errorf("%s: the status says %q, want %q\n%s", name, says, c.status, screen.String())
		}
	}
}

package proxy_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"quayside.io/proxy"
)

// The Ingresses of a namespace are served while its labels match, without a restart,
// and those of others all the while.
func TestNamespacesBySelector(t *testing.T) {
	files, p := start(t, func(o *proxy.Options) {
		o.Routes.Classes.Namespaces = labels.SelectorFromSet(labels.Set{"edge": "public"})
	})
	space := func(name, edge string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"edge": edge}}}
	}
	always, site := ingress("always", "always.test", "/", "web", number), ingress("site", "site.test", "/", "web", number)
	web, pods := service("web", corev1.ServicePort{Port: 80}), slice("web", "", backend(t, "one"))
	always.Namespace, web.Namespace, pods.Namespace = "public", "public", "public"
	files.Put(space("public", "public"), space("default", "private"), always, web, pods,
		site, service("web", corev1.ServicePort{Port: 80}), slice("web", "", backend(t, "two")))
	addr := bound(p, false)
	becomes := func(what, host string, want int) {
		t.Helper()
		eventually(t, what, func() bool { code, _ := get(t, addr, host, "/"); return code == want })
	}
	becomes("an Ingress of a namespace with the label is served", "always.test", 200)
	if code, _ := get(t, addr, "site.test", "/"); code != 404 {
		t.Errorf("an Ingress of a namespace with another label: %d, want 404", code)
	}
	for range 2 {
		files.Put(space("default", "public"))
		becomes("it is served with the label", "site.test", 200)
		files.Put(space("default", "private"))
		becomes("it is not served without the label", "site.test", 404)
	}
	if code, _ := get(t, addr, "always.test", "/"); code != 200 {
		t.Errorf("the namespace that keeps its label: %d, want 200", code)
	}
}

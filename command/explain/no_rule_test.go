package explain

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/route"
)

// What no path of a host in an adopted class is for comes to its oldest Ingress, which may answer,
// or close it; else it is told as any 404.
func TestTraceWhatNoRuleIsFor(t *testing.T) {
	web := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	pages := web.DeepCopy()
	pages.Name = "pages"
	classes := ingressclass.Rules{Adopt: []string{ingressclass.NginxController}}
	for name, c := range map[string]struct {
		annotations map[string]string
		options     route.Options
		last        string // what the last link says
	}{
		"nothing":   {last: "404: no path of host shop.example.com matches /other; it has /app"},
		"a service": {options: route.Options{DefaultBackend: snapshot.Key{Namespace: "shop", Name: "pages"}}, last: "it has /app; Service shop/pages of --default-backend-service answers"},
		"redirect":  {annotations: map[string]string{route.NginxPrefix + "permanent-redirect": "https://new.example.com"}, last: "answers 301 and sends the client to https://new.example.com"},
		"closed":    {annotations: map[string]string{route.NginxPrefix + "auth-type": "digest"}, last: "host shop.example.com, which has no rule for that, is closed with 503"},
	} {
		i := site(nil)
		i.Spec.IngressClassName, i.Annotations = new("nginx"), c.annotations
		i.Spec.Rules[0].HTTP.Paths[0].Path = "/app"
		class := &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "nginx"}, Spec: networkingv1.IngressClassSpec{Controller: ingressclass.NginxController}}
		cluster := snapshot.Of(i, web, pages, class)
		c.options.Classes = classes
		target, err := ParseTarget("http://shop.example.com/other")
		if err != nil {
			t.Fatal(err)
		}
		links := Trace(Inputs{Cluster: cluster, Routes: route.Compile(cluster, nil, c.options)}, target).Links
		if last := links[len(links)-1]; !strings.Contains(last.Says, c.last) {
			t.Errorf("%s: %+v, want %q", name, links, c.last)
		}
	}
}

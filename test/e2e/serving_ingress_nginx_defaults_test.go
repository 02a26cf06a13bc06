package e2e

import (
	networkingv1 "k8s.io/api/networking/v1"
)

// drawDefaults draws Ingresses of a host, the oldest of them with a backend for what no path is
// for; that of another has none there.
func (w *ingressWorld) drawDefaults(host string) {
	for n := range 1 + w.IntN(2) {
		i := w.ingress(host, w.beyond(), w.seldom(3), w.paths(networkingv1.PathTypePrefix, "/a", "/a/b", "/")...)
		if w.seldom(3) {
			i.Spec.Rules[0].HTTP = nil
		}
		if n == 0 && !w.seldom(3) {
			i.Spec.DefaultBackend = new(w.backend())
		}
	}
	w.ask(host, true, []string{"/", "/a", "/a/b/c", "/ab", "/nowhere"}, []string{"X-May", "200", "401"})
}

// drawCatchAll draws Ingresses without a host, and one without rules, which serve hosts that no
// other Ingress has. There the one without rules comes before a rule for "/", so no such is drawn.
func (w *ingressWorld) drawCatchAll() {
	paths := []string{"/", "/a", "/a/b"}
	if w.seldom(2) {
		i := w.ingress("", w.beyond(), false)
		i.Spec.Rules, i.Spec.DefaultBackend = nil, new(w.backend())
		paths = paths[1:]
	}
	for range w.IntN(3) {
		w.ingress("", w.beyond(), w.seldom(3), w.paths(networkingv1.PathTypePrefix, paths...)...)
	}
	for _, host := range []string{"nobody.example", "x.nobody.example", "127.0.0.1"} {
		w.askOf(8, host, true, []string{"/", "/a", "/a/b/c", "/ab", "/nowhere"}, []string{"X-May", "200", "401"})
	}
}

// beyond draws options of an Ingress, which what no path is for may have, too.
func (w *ingressWorld) beyond() map[string]string {
	return w.draw(4, []string{"ssl-redirect", "false"}, []string{"force-ssl-redirect", "true"}, []string{"upstream-vhost", "v.example"}, []string{"whitelist-source-range", "127.0.0.0/8", "10.0.0.0/8"},
		[]string{"configuration-snippet", `more_set_headers "X-Set: $host";`}, []string{"permanent-redirect", "https://other.example/p"}, []string{"custom-headers", "default/added"})
}

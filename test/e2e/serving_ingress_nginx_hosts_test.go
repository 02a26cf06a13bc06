package e2e

import (
	networkingv1 "k8s.io/api/networking/v1"
)

// drawNames draws Ingresses that meet at the names of a domain: those of rules, patterns of them,
// aliases, and the names with www. Some have no rule for "/", or for any path.
func (w *ingressWorld) drawNames(domain string) {
	www, aliased := w.seldom(2), false
	kind := pick(w.dice, networkingv1.PathTypePrefix, networkingv1.PathTypeImplementationSpecific)
	names := []string{"a." + domain, "b." + domain, "*." + domain, domain}
	for _, i := range w.Perm(len(names))[:1+w.IntN(3)] {
		options := w.draw(6, []string{"ssl-redirect", "false"}, []string{"force-ssl-redirect", "true"}, []string{"enable-cors", "true"}, []string{"upstream-vhost", "v.example"},
			[]string{"whitelist-source-range", "127.0.0.0/8", "10.0.0.0/8"}, []string{"auth-url", w.auth}, []string{"permanent-redirect", "https://other.example/p"},
			[]string{"configuration-snippet", `more_set_headers "X-Set: $host";`}, []string{"custom-headers", "default/added"})
		if w.guarded { // no-auth-locations would open it there
			delete(options, "auth-url")
		}
		if !aliased && names[i] != domain && w.seldom(3) {
			options["server-alias"], aliased = pick(w.dice, "c."+domain, "c."+domain+",d."+domain), true
		}
		if www && names[i] != "*."+domain {
			options["from-to-www-redirect"] = "true"
		}
		if w.seldom(2) {
			options["default-backend"] = w.service()
			if options["custom-headers"] == "" && options["configuration-snippet"] == "" && options["enable-cors"] == "" && w.seldom(2) { // fields that pages have here alone
				w.paged[domain] = true
				options["custom-http-errors"] = pick(w.dice, "404", "404,503", "503")
			}
		}
		first := w.paths(kind, "/", "/a", "/a/b", "/B")
		if first[0].path != "/" && w.flags.DefaultBackendService == "" && w.seldom(3) { // with both types of it ingress-nginx mistakes one Service for the other
			first = append(first, rule{"/", networkingv1.PathTypeExact})
		}
		w.ingress(names[i], options, w.seldom(2), first...)
		if w.seldom(2) {
			w.ingress(names[i], w.draw(4, []string{"whitelist-source-range", "10.0.0.0/8"}, []string{"ssl-redirect", "false"}), w.seldom(4), w.paths(kind, "/a", "/c", "/")...)
		}
	}
	targets := []string{"/", "/a", "/a/", "/a/b/c", "/B?x=1", "/c", "/nowhere", "/a?status=404", "/c?status=503", "/?status=404"}
	fields := [][]string{{"X-May", "200", "401"}, {"Accept", "text/html", "application/json"}, {"Origin", "http://a.example"}}
	var hosts []string
	for _, name := range []string{"a", "b", "c", "d", "x", "x.y", "www", "www.a", "A"} {
		hosts = append(hosts, name+"."+domain)
	}
	for _, host := range append(hosts, "a."+domain+".", domain) {
		w.askOf(4, host, true, targets, fields...)
	}
}

// paths are rules for some of them, at least one, of a type or Exact. Two of another type with one
// path are one location to nginx, which does not start with both.
func (w *ingressWorld) paths(kind networkingv1.PathType, of ...string) (rules []rule) {
	for _, path := range of {
		if w.seldom(2) {
			as := kind
			if path != "/" {
				as = pick(w.dice, kind, kind, networkingv1.PathTypeExact)
			}
			rules = append(rules, rule{path, as})
		}
	}
	if len(rules) == 0 {
		rules = append(rules, rule{of[0], kind})
	}
	return rules
}

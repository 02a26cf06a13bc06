package route_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/balance"
	"quayside.io/proxy/route"
)

// oursOf returns the Ingresses that take part, the oldest first.
func oursOf(c *snapshot.Cluster) []*networkingv1.Ingress {
	var ours []*networkingv1.Ingress
	for _, ing := range c.Ingresses.Sorted() {
		if name := ing.Spec.IngressClassName; name != nil && (*name == "quayside" || *name == "nginx") &&
			ing.Annotations["nginx.ingress.kubernetes.io/canary"] == "" {
			ours = append(ours, ing)
		}
	}
	slices.SortStableFunc(ours, func(a, b *networkingv1.Ingress) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return ours
}

// ranksOf returns the hosts of rules that answer for a request, the best first.
func ranksOf(asked string) []string {
	asked = strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(asked), ":80"), ".")
	if asked == "" || strings.HasPrefix(asked, "[") {
		return []string{""}
	}
	if _, rest, dotted := strings.Cut(asked, "."); dotted {
		return []string{asked, "*." + rest, ""}
	}
	return []string{asked, ""}
}

// loose spells a path as a careless backend reads it.
func loose(path string) string {
	var kept []string
	elements := strings.Split(strings.NewReplacer("%2F", "/", "%5C", "/").Replace(path), "/")
	for i, e := range elements {
		if e, _, _ = strings.Cut(e, ";"); e != "" || i == len(elements)-1 {
			kept = append(kept, e)
		}
	}
	return "/" + strings.Join(kept, "/")
}

// guardsMet returns the guarded routes that a path meets when it and all rules are
// read loosely. There are several where rules differ in their spelling only.
func guardsMet(c *snapshot.Cluster, asked, path string) []string {
	ours := oursOf(c)
	taken := map[string]bool{}
	for _, host := range ranksOf(asked) {
		best, sealed := "", false
		var met []string
		for _, ing := range ours {
			for _, rule := range ing.Spec.Rules {
				if rule.Host != host {
					continue
				}
				sealed = sealed || *ing.Spec.IngressClassName == "nginx"
				for _, p := range pathsOf(ing, rule) {
					normal, _ := route.Normalize(nil, []byte(p.Path))
					place := fmt.Sprint(host, *p.PathType == "Exact", strings.TrimSuffix(string(normal), "/"))
					if *p.PathType == "Exact" {
						place = fmt.Sprint(host, true, string(normal))
					}
					if taken[place] {
						continue
					}
					taken[place] = true
					spelled := p
					spelled.Path = loose(string(normal))
					matched := rulePath(spelled, loose(path))
					if matched == "" || matched < best {
						continue
					}
					if matched > best {
						best, met = matched, nil
					}
					if guarded(ing) {
						met = append(met, tell(c, ours, ing, host, p.Path, string(*p.PathType), p.Backend))
					}
				}
			}
		}
		if best != "" {
			return met
		}
		if sealed {
			break
		}
	}
	return guardingFallback(c, asked)
}

// guardingFallback returns the default backend for a request that no rule matches,
// if it is guarded.
func guardingFallback(c *snapshot.Cluster, asked string) []string {
	told := scan(c, asked, "/no/rule/has/this")
	for _, ing := range oursOf(c) {
		if guarded(ing) && strings.HasPrefix(told, snapshot.KeyOf(ing).String()+" ") {
			return []string{told}
		}
	}
	return nil
}

// guarded reports whether an Ingress asks for what closes its routes.
func guarded(ing *networkingv1.Ingress) bool {
	return ing.Annotations["nginx.ingress.kubernetes.io/auth-url"] != "" || ing.Annotations["nginx.ingress.kubernetes.io/enable-modsecurity"] != ""
}

// scan is the stupid twin of Table.Match.
func scan(c *snapshot.Cluster, asked, path string) string {
	ours, ranks := oursOf(c), ranksOf(asked)
	sealed := false
	var fallbacks []string
	for _, host := range ranks {
		best, bestPath, fallback := "", "", ""
		weakFallback, left := "", ""
		for _, ing := range ours {
			nginx := *ing.Spec.IngressClassName == "nginx"
			named := false
			for _, rule := range ing.Spec.Rules {
				if rule.Host != host {
					continue
				}
				named = true
				sealed = sealed || nginx
				for _, p := range pathsOf(ing, rule) {
					if matched := rulePath(p, path); matched > bestPath {
						best, bestPath = tell(c, ours, ing, host, p.Path, string(*p.PathType), p.Backend), matched
					}
				}
			}
			def := ing.Spec.DefaultBackend
			switch {
			case def == nil && nginx && named && host != "":
				left = cmp.Or(left, tell(c, ours, ing, host, "", "", networkingv1.IngressBackend{}))
			case def == nil:
			case host == "" && len(ing.Spec.Rules) == 0:
				fallback = cmp.Or(fallback, tell(c, ours, ing, "", "", "", *def))
			case named || host == "" && !nginx:
				weakFallback = cmp.Or(weakFallback, tell(c, ours, ing, host, "", "", *def))
			}
		}
		if best != "" {
			return best
		}
		fallbacks = append(fallbacks, cmp.Or(fallback, weakFallback, left))
		if sealed {
			break
		}
	}
	return cmp.Or(append(fallbacks, "404")...)
}

func pathsOf(ing *networkingv1.Ingress, rule networkingv1.IngressRule) []networkingv1.HTTPIngressPath {
	if rule.HTTP != nil {
		return rule.HTTP.Paths
	}
	if ing.Spec.DefaultBackend == nil || *ing.Spec.IngressClassName == "nginx" {
		return nil
	}
	prefix := networkingv1.PathTypePrefix
	return []networkingv1.HTTPIngressPath{{Path: "/", PathType: &prefix, Backend: *ing.Spec.DefaultBackend}}
}

// rulePath returns how well a rule matches, as a string that sorts: an Exact
// rule comes after every Prefix, a longer Prefix after a shorter one.
func rulePath(p networkingv1.HTTPIngressPath, path string) string {
	normal, _ := route.Normalize(nil, []byte(p.Path))
	rule := string(normal)
	if *p.PathType == networkingv1.PathTypeExact {
		if rule == path {
			return "exact"
		}
		return ""
	}
	want, have := strings.Split(strings.Trim(rule, "/"), "/"), strings.Split(strings.TrimPrefix(path, "/"), "/")
	if rule == "/" {
		want = nil
	}
	if len(want) > len(have) || !slices.Equal(want, have[:len(want)]) {
		return ""
	}
	return fmt.Sprintf("2 %03d", len(want)) // "2" < "e"
}

func tell(c *snapshot.Cluster, ours []*networkingv1.Ingress, ing *networkingv1.Ingress, host, path, pathType string, be networkingv1.IngressBackend) string {
	nginx := *ing.Spec.IngressClassName == "nginx"
	redirect := "never"
	if nginx || ing.Annotations["nginx.ingress.kubernetes.io/ssl-redirect"] == "true" {
		redirect = "tls"
	}
	if ing.Annotations["nginx.ingress.kubernetes.io/ssl-redirect"] == "false" {
		redirect = "never"
	}
	if ing.Annotations["ingress.quayside.io/force-ssl-redirect"] == "true" {
		redirect = "always"
	}
	if nginx && len(ing.Spec.Rules) == 0 {
		redirect = "never"
	}
	var key snapshot.Key
	if be.Service != nil {
		key = snapshot.Key{Namespace: "n", Name: be.Service.Name}
	}
	backend := "closed"
	svc, ok := c.Services.Get(key)
	switch {
	case guarded(ing):
	case be.Service == nil:
		backend = "no rule"
	case ok && slices.ContainsFunc(svc.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == be.Service.Port.Number }):
		backend = fmt.Sprintf("%+v", route.Backend{Service: key, Port: balance.PortRef{Number: be.Service.Port.Number}, AnyNode: nginx})
	}
	return fmt.Sprintf("%s host=%s path=%s type=%s redirect=%v service=%s %s", snapshot.KeyOf(ing), host, path, pathType,
		redirect == "always" || redirect == "tls" && (hasTLS(ours, host) || tlsAbove(ours, host)), key, backend)
}

// tlsAbove reports whether some Ingress has rules for the wildcard host above, and a tls entry.
func tlsAbove(ours []*networkingv1.Ingress, host string) bool {
	_, parent, dotted := strings.Cut(host, ".")
	return dotted && !strings.HasPrefix(host, "*") && slices.ContainsFunc(ours, func(ing *networkingv1.Ingress) bool {
		named := slices.ContainsFunc(ing.Spec.Rules, func(r networkingv1.IngressRule) bool { return r.Host == "*."+parent })
		return named && hasTLS([]*networkingv1.Ingress{ing}, "*."+parent)
	})
}

// hasTLS reports whether some Ingress that names the host has a tls entry for it.
func hasTLS(ours []*networkingv1.Ingress, host string) bool {
	for _, ing := range ours {
		named := slices.ContainsFunc(ing.Spec.Rules, func(r networkingv1.IngressRule) bool { return r.Host == host })
		nginx := *ing.Spec.IngressClassName == "nginx"
		for _, entry := range ing.Spec.TLS {
			_, parent, _ := strings.Cut(host, ".")
			switch {
			case slices.Contains(entry.Hosts, host):
				return true
			case nginx && host == "":
			case named && (nginx || len(entry.Hosts) == 0):
				return true
			case named && host != "" && !strings.HasPrefix(host, "*") && slices.Contains(entry.Hosts, "*."+parent):
				return true
			case host == "" && len(entry.Hosts) == 0 && ing.Spec.DefaultBackend != nil:
				return true
			}
		}
	}
	return false
}

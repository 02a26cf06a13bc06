package route_test

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	gocmp "github.com/google/go-cmp/cmp"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/balance"
	"quayside.io/proxy/route"
	"quayside.io/test/certificate"
)

// The vocabulary of the random clusters is small, so that objects meet.
func hosts() []string  { return []string{"", "a.test", "b.a.test", "*.a.test", "*.test", "c.a.test"} }
func askers() []string { return append(hosts(), "x.test", "x.y.test", "B.A.Test.:80", "[::1]:80") }

func paths() []string {
	return []string{"/", "/a", "/a/", "/a/b", "/a/b/", "/ab", "/A", "/a//b", "/a%2fb", "/a/%62/c"}
}

// secrets are made once: keys are slow to draw.
func secrets(t testing.TB) []*corev1.Secret {
	return []*corev1.Secret{
		certificate.Secret(t, "n/one", now.AddDate(0, 1, 0), "a.test", "*.a.test"),
		certificate.Secret(t, "n/two", now.AddDate(0, 2, 0), "*.test"),
		certificate.Secret(t, "n/one", now.AddDate(0, 3, 0), "b.a.test"),
		{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "two"}},
	}
}

func drawIngress(t *rapid.T) *networkingv1.Ingress {
	ing := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{
		Namespace: "n", Name: rapid.SampledFrom([]string{"i", "j", "k", "l"}).Draw(t, "name"),
		CreationTimestamp: metav1.NewTime(now.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "age")) * time.Hour)),
		Annotations:       map[string]string{},
	}}
	if class := rapid.SampledFrom([]string{"quayside", "quayside", "nginx", "other", ""}).Draw(t, "class"); class != "" {
		ing.Spec.IngressClassName = &class
	}
	for _, row := range [][]string{ // in order, or rapid could not draw the same again
		{"ingress.quayside.io/force-ssl-redirect", "", "", "true"},
		{"nginx.ingress.kubernetes.io/auth-url", "", "", "", "//auth"},
		{"nginx.ingress.kubernetes.io/canary", "", "", "", "", "true"},
		{"nginx.ingress.kubernetes.io/enable-modsecurity", "", "", "true"},
		{"nginx.ingress.kubernetes.io/ssl-redirect", "", "true", "false"},
	} {
		if v := rapid.SampledFrom(row[1:]).Draw(t, row[0]); v != "" {
			ing.Annotations[row[0]] = v
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "default") == 0 {
		b := drawBackend(t)
		ing.Spec.DefaultBackend = &b
	}
	for range rapid.IntRange(0, 3).Draw(t, "rules") {
		rule := networkingv1.IngressRule{Host: rapid.SampledFrom(hosts()).Draw(t, "host")}
		if n := rapid.IntRange(0, 4).Draw(t, "paths"); n > 0 {
			rule.HTTP = &networkingv1.HTTPIngressRuleValue{}
			for range n {
				pathType := rapid.SampledFrom([]networkingv1.PathType{"Exact", "Prefix", "ImplementationSpecific"}).Draw(t, "type")
				rule.HTTP.Paths = append(rule.HTTP.Paths, networkingv1.HTTPIngressPath{
					Path: rapid.SampledFrom(paths()).Draw(t, "path"), PathType: &pathType, Backend: drawBackend(t),
				})
			}
		}
		ing.Spec.Rules = append(ing.Spec.Rules, rule)
	}
	for range rapid.IntRange(0, 2).Draw(t, "tls") {
		entry := networkingv1.IngressTLS{SecretName: rapid.SampledFrom([]string{"", "one", "two", "missing"}).Draw(t, "secret")}
		entry.Hosts = rapid.SliceOfN(rapid.SampledFrom(hosts()[1:]), 0, 2).Draw(t, "tls hosts")
		ing.Spec.TLS = append(ing.Spec.TLS, entry)
	}
	return ing
}

func drawBackend(t *rapid.T) networkingv1.IngressBackend {
	return networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
		Name: rapid.SampledFrom([]string{"s", "t", "u"}).Draw(t, "service"),
		Port: networkingv1.ServiceBackendPort{Number: rapid.SampledFrom([]int32{80, 81}).Draw(t, "port")},
	}}
}

func drawService(t *rapid.T) *corev1.Service {
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: rapid.SampledFrom([]string{"s", "t", "u"}).Draw(t, "service")}}
	for _, port := range rapid.SliceOfNDistinct(rapid.SampledFrom([]int32{80, 81}), 0, 2, rapid.ID).Draw(t, "ports") {
		svc.Spec.Ports = append(svc.Spec.Ports, corev1.ServicePort{Port: port})
	}
	return svc
}

func nginxClass() *networkingv1.IngressClass {
	return &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "nginx"}, Spec: networkingv1.IngressClassSpec{Controller: "k8s.io/ingress-nginx"}}
}

func adopting() route.Options {
	return route.Options{Classes: ingressclass.Rules{Adopt: []string{ingressclass.NginxController}}, Now: now}
}

// TestMatchAgainstLinearScan compares the Table with the plainest reading of the
// specification: look at every rule of every Ingress, and keep the best.
func TestMatchAgainstLinearScan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := snapshot.Of(nginxClass())
		for range rapid.IntRange(1, 4).Draw(t, "ingresses") {
			c = c.With(drawIngress(t))
		}
		for range rapid.IntRange(0, 3).Draw(t, "services") {
			c = c.With(drawService(t))
		}
		table := route.Compile(c, nil, adopting())
		for _, host := range askers() {
			for _, target := range append(paths(), "/a/b/c/d", "/zzz") {
				path, _ := route.Normalize(nil, []byte(target))
				got := describe(table, match(table, host, string(path)))
				if met := guardsMet(c, host, string(path)); len(met) > 0 && strings.ContainsAny(string(path), "%;") {
					if !slices.Contains(met, got) {
						t.Fatalf("%s%s: read loosely it meets %q, the table has %q", host, path, met, got)
					}
					continue
				}
				if diff := gocmp.Diff(scan(c, host, string(path)), got); diff != "" {
					t.Fatalf("%s%s: the scan wants -, the table has +:\n%s", host, path, diff)
				}
			}
		}
	})
}

// describe tells a route in words that the twin knows, too.
func describe(t *route.Table, r *route.Route) string {
	if r == nil {
		return "404"
	}
	b := "closed"
	if r.Closed == "" {
		b = fmt.Sprintf("%+v", t.Backends[r.Backend])
	}
	return fmt.Sprintf("%s host=%s path=%s type=%s redirect=%v service=%s %s", r.Owner.Key, r.Host, r.Path, r.Type, r.RedirectTLS, r.Service, b)
}

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
		weakFallback := ""
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
		fallbacks = append(fallbacks, cmp.Or(fallback, weakFallback))
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
	if ing.Spec.DefaultBackend == nil {
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
	key := snapshot.Key{Namespace: "n", Name: be.Service.Name}
	backend := "closed"
	svc, ok := c.Services.Get(key)
	if ok && !guarded(ing) &&
		slices.ContainsFunc(svc.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == be.Service.Port.Number }) {
		backend = fmt.Sprintf("%+v", route.Backend{Service: key, Port: balance.PortRef{Number: be.Service.Port.Number}, AnyNode: nginx})
	}
	return fmt.Sprintf("%s host=%s path=%s type=%s redirect=%v service=%s %s", snapshot.KeyOf(ing), host, path, pathType,
		redirect == "always" || redirect == "tls" && hasTLS(ours, host), key, backend)
}

// hasTLS reports whether some Ingress that names the host has a tls entry for it.
func hasTLS(ours []*networkingv1.Ingress, host string) bool {
	for _, ing := range ours {
		named := slices.ContainsFunc(ing.Spec.Rules, func(r networkingv1.IngressRule) bool { return r.Host == host })
		for _, entry := range ing.Spec.TLS {
			_, parent, _ := strings.Cut(host, ".")
			switch {
			case slices.Contains(entry.Hosts, host):
				return true
			case named && len(entry.Hosts) == 0:
				return true
			case named && host != "" && !strings.HasPrefix(host, "*") && slices.Contains(entry.Hosts, "*."+parent):
				return true
			case host == "" && len(entry.Hosts) == 0 && ing.Spec.DefaultBackend != nil && (len(ing.Spec.Rules) == 0 || *ing.Spec.IngressClassName != "nginx"):
				return true
			}
		}
	}
	return false
}

// TestStepByStepIsFromScratch drives random histories. After each step the Table
// compiled from the one before must equal the Table compiled from nothing, and
// the one before must still be what it was.
func TestStepByStepIsFromScratch(t *testing.T) {
	drawn := secrets(t)
	rapid.Check(t, func(t *rapid.T) {
		c, opts := snapshot.Of(nginxClass()), adopting()
		table := route.Compile(c, nil, opts)
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			for range rapid.IntRange(1, 3).Draw(t, "changes") {
				c = change(t, c, drawn, &opts)
			}
			before := dump(table)
			next := route.Compile(c, table, opts)
			if diff := gocmp.Diff(before, dump(table)); diff != "" {
				t.Fatalf("Compile changed the Table before:\n%s", diff)
			}
			got, want := dump(next), dump(route.Compile(c, nil, opts))
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Fatalf("from scratch -, step by step +:\n%s", diff)
			}
			if next.Version == table.Version && gocmp.Diff(before, got) != "" {
				t.Fatalf("answers changed, but not the version:\n%s", gocmp.Diff(before, got))
			}
			table = next
		}
	})
}

func change(t *rapid.T, c *snapshot.Cluster, drawn []*corev1.Secret, opts *route.Options) *snapshot.Cluster {
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0, 1, 2, 3:
		return c.With(drawIngress(t))
	case 4:
		return c.Without(snapshot.Ingress, snapshot.Key{Namespace: "n", Name: rapid.SampledFrom([]string{"i", "j", "k", "l"}).Draw(t, "gone")})
	case 5:
		return c.With(drawService(t))
	case 6:
		return c.Without(snapshot.Service, snapshot.Key{Namespace: "n", Name: rapid.SampledFrom([]string{"s", "t", "u"}).Draw(t, "gone")})
	case 7:
		return c.With(rapid.SampledFrom(drawn).Draw(t, "secret").DeepCopy())
	case 8:
		if rapid.Bool().Draw(t, "class or secret") {
			return c.Without(snapshot.IngressClass, snapshot.Key{Name: "nginx"})
		}
		opts.DefaultCertificate = snapshot.Key{Namespace: "n", Name: rapid.SampledFrom([]string{"one", "two", "missing"}).Draw(t, "default")}
		return c.Without(snapshot.Secret, snapshot.Key{Namespace: "n", Name: "one"})
	}
	if rapid.IntRange(0, 3).Draw(t, "option") == 0 {
		opts.Classes.Adopt = rapid.SliceOfDistinct(rapid.SampledFrom([]string{ingressclass.NginxController, ingressclass.Controller}), rapid.ID).Draw(t, "adopted")
		return c
	}
	opts.Now = opts.Now.Add(time.Duration(rapid.IntRange(0, 40*24).Draw(t, "hours")) * time.Hour)
	return c
}

// dump is all that a Table says, without the numbers of its backends.
func dump(t *route.Table) map[string]any {
	var routes, certs []string
	for r := range t.Routes() {
		routes = append(routes, describe(t, r))
	}
	name := func(c *tls.Certificate) string {
		if c == nil {
			return "none"
		}
		return c.Leaf.Subject.CommonName + c.Leaf.NotAfter.String()
	}
	for host, cert := range t.Certificates() {
		certs = append(certs, host+" "+name(cert))
	}
	answers := map[string]string{}
	for _, host := range askers() {
		answers["sni "+host] = name(t.Certificate(host))
		for _, path := range paths() {
			answers[host+path] = describe(t, match(t, host, path))
		}
	}
	var backends []string
	for _, b := range t.Backends {
		if b != (route.Backend{}) {
			backends = append(backends, fmt.Sprint(b))
		}
	}
	slices.Sort(backends)
	return map[string]any{
		"routes": routes, "certs": certs, "answers": answers, "backends": backends,
		"problems": slices.Clone(t.Problems), "wake": t.NextWake.String(),
	}
}

// TestAnythingCompiles feeds what no API server would let pass.
func TestAnythingCompiles(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[*.a-c/%0-9]{0,8}`), rapid.Just("/"), rapid.Just("*.a"))
	rapid.Check(t, func(t *rapid.T) {
		ing := drawIngress(t)
		for i := range ing.Spec.Rules {
			rule := &ing.Spec.Rules[i]
			rule.Host = text.Draw(t, "host")
			if rule.HTTP == nil {
				continue
			}
			for j := range rule.HTTP.Paths {
				p := &rule.HTTP.Paths[j]
				p.Path = text.Draw(t, "path")
				switch rapid.IntRange(0, 4).Draw(t, "spoil") {
				case 0:
					p.PathType = nil
				case 1:
					unknown := networkingv1.PathType(text.Draw(t, "type"))
					p.PathType = &unknown
				case 2:
					p.Backend.Service = nil
				case 3:
					p.Backend.Service = &networkingv1.IngressServiceBackend{}
				}
			}
		}
		for i := range ing.Spec.TLS {
			ing.Spec.TLS[i].Hosts = append(ing.Spec.TLS[i].Hosts, text.Draw(t, "tls host"))
		}
		ing.Annotations["nginx.ingress.kubernetes.io/"+text.Draw(t, "key")] = text.Draw(t, "value")
		table := route.Compile(snapshot.Of(nginxClass(), ing, drawService(t)), nil, adopting())
		for range 5 {
			host, target := text.Draw(t, "asked"), text.Draw(t, "target")
			table.Certificate(host)
			path, _ := route.Normalize(nil, []byte(target))
			if r := match(table, host, string(path)); r != nil && (r.Closed == "") != (r.Backend >= 0) {
				t.Fatalf("closed %q, but backend %d", r.Closed, r.Backend)
			}
			match(table, host, target)
		}
	})
}

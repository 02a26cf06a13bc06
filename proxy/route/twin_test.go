package route_test

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	"pgregory.net/rapid"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/route"
)

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
	switch {
	case r.Closed != "":
	case r.NoRule:
		b = "no rule"
	case r.Backend < 0:
		b = "leads nowhere"
	default:
		b = fmt.Sprintf("%+v", t.Backends[r.Backend])
	}
	scripts := ""
	if r.Filters != nil {
		for _, s := range r.Filters.Scripts {
			scripts += fmt.Sprintf(" script %v %d %d %d", s.OfHost, len(s.Steps), len(s.Places), len(s.Fields[0]))
		}
	}
	return fmt.Sprintf("%s host=%s path=%s type=%s redirect=%v service=%s%s %s", r.Owner.Key, r.Host, r.Path, r.Type, r.RedirectTLS, r.Service, scripts, b)
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
	for host, list := range t.AllCertificates() {
		for _, cert := range list {
			certs = append(certs, host+" "+name(cert))
		}
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
			if r := match(table, host, string(path)); r != nil && (r.Closed == "" && !r.NoRule) != (r.Backend >= 0) {
				t.Fatalf("closed %q, but backend %d", r.Closed, r.Backend)
			}
			match(table, host, target)
		}
	})
}

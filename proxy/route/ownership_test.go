package route_test

import (
	"strings"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/route"
)

// owned makes Ingresses in the order of their age, each "NAMESPACE HOST PATH", with
// "-" for no host, and "NAMESPACE" for a default backend alone.
func owned(lines ...string) []snapshot.Object {
	objects := []snapshot.Object{}
	for _, space := range []string{"a", "b"} {
		s := plainService("s")
		s.Namespace = space
		objects = append(objects, s)
	}
	for i, line := range lines {
		words := strings.Fields(line)
		ing := plainIngress("i"+string(rune('0'+i)), "", "s", "/")
		ing.Namespace, ing.CreationTimestamp = words[0], metav1.NewTime(now.Add(time.Duration(i)*time.Minute))
		if len(words) == 1 {
			ing.Spec.DefaultBackend = &ing.Spec.Rules[0].HTTP.Paths[0].Backend
			ing.Spec.Rules = nil
		} else {
			ing.Spec.Rules[0].Host = strings.TrimPrefix(words[1], "-")
			ing.Spec.Rules[0].HTTP.Paths[0].Path = words[2]
		}
		if len(words) > 3 {
			ing.Annotations = map[string]string{route.NginxPrefix + "server-alias": words[3]}
		}
		objects = append(objects, ing)
	}
	return objects
}

func TestHostOwnership(t *testing.T) {
	first, noCatchAll := route.Options{FirstNamespace: true}, route.Options{NoCatchAll: true}
	for _, c := range []struct {
		name      string
		options   route.Options
		ingresses []string
		answers   string // "HOST/PATH=NAMESPACE" or "=404"
		told      int
	}{
		{"shared", route.Options{}, []string{"a x.test /", "b x.test /b"}, "x.test/b=b x.test/=a", 0},
		{"first", first, []string{"a x.test /", "b x.test /b", "a x.test /c"}, "x.test/b=a x.test/c=a", 1},
		{"first by age", first, []string{"b x.test /b", "a x.test /"}, "x.test/b=b x.test/=404", 1},
		{"wildcard takes nothing of it", first, []string{"a x.y.test /a", "b *.y.test /"}, "x.y.test/a=a x.y.test/b=404 z.y.test/b=b", 0},
		{"wildcard of its own", first, []string{"a x.y.test /a", "a *.y.test /"}, "x.y.test/b=a", 0},
		{"wildcard, shared", noCatchAll, []string{"a x.y.test /a", "b *.y.test /"}, "x.y.test/b=b", 0},
		{"default backend takes nothing of it", first, []string{"b", "a x.test /a"}, "x.test/b=404 z.test/b=b", 0},
		{"default backend", noCatchAll, []string{"b", "a x.test /a"}, "x.test/b=404 z.test/b=b", 0},
		{"default backend of its own", noCatchAll, []string{"a", "a x.test /a"}, "x.test/b=a", 0},
		{"hostless rule", noCatchAll, []string{"b - /", "a x.test /a"}, "x.test/b=404 z.test/b=b x.test/a=a", 0},
		{"hostless rule, allowed", route.Options{}, []string{"b - /", "a x.test /a"}, "x.test/b=b", 0},
		{"hostless rule below a wildcard", noCatchAll, []string{"b - /", "a *.test /a"}, "x.test/b=404", 0},
		{"hostless rules are everybody's", first, []string{"a - /a", "b - /b"}, "x.test/b=b x.test/a=a", 0},
		{"alias takes no host", first, []string{"b z.test / x.test", "a x.test /a"}, "x.test/a=a x.test/b=404", 1},
		{"alias is a name like others", first, []string{"b z.test / x.test", "a y.test / x.test"}, "x.test/a=b", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := route.Compile(snapshot.Of(owned(c.ingresses...)...), nil, c.options)
			for _, answer := range strings.Fields(c.answers) {
				target, want, _ := strings.Cut(answer, "=")
				host, path, _ := strings.Cut(target, "/")
				got := "404"
				if r := match(table, host, "/"+path); r != nil {
					got = r.Owner.Namespace
				}
				if got != want {
					t.Errorf("%s: %s answers, want %s", target, got, want)
				}
			}
			told := 0
			for _, p := range table.Problems {
				if p.Reason == route.HostOwned || p.Reason == route.AliasUnused {
					told++
				}
			}
			if told != c.told {
				t.Errorf("%d are told, want %d: %v", told, c.told, table.Problems)
			}
		})
	}
}

// TestAliasBesideACertificate: who only shows a certificate for a host keeps nobody's alias or
// redirect from serving it, and who has a rule for it does.
func TestAliasBesideACertificate(t *testing.T) {
	shows := plainIngress("shows", "z.test", "s", "/")
	shows.Namespace = "a"
	shows.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"x.test"}}}
	empty := plainIngress("empty", "x.test", "s")
	empty.Namespace = "a"
	for name, c := range map[string]struct {
		more []snapshot.Object
		want string // the namespace that answers for x.test; "": none
	}{
		"nothing else":         {nil, "b"},
		"a certificate":        {[]snapshot.Object{shows}, "b"},
		"a rule":               {owned("a x.test /a"), ""},
		"a rule without paths": {[]snapshot.Object{empty}, ""},
	} {
		table := route.Compile(snapshot.Of(append(owned("a w.test /", "b y.test / x.test"), c.more...)...), nil, route.Options{})
		got := ""
		if r := match(table, "x.test", "/"); r != nil && !r.NoRule {
			got = r.Owner.Namespace
		}
		if got != c.want {
			t.Errorf("%s: %q answers, wanted %q", name, got, c.want)
		}
	}
}

// TestHostOwnershipOfCertificates: a certificate for a host of others is not taken.
func TestHostOwnershipOfCertificates(t *testing.T) {
	objects := owned("a x.test /")
	grab := plainIngress("grab", "z.test", "s", "/")
	grab.Namespace = "b"
	grab.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"x.test"}}}
	grab.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour))
	table := route.Compile(snapshot.Of(append(objects, grab)...), nil, route.Options{FirstNamespace: true})
	if len(table.Problems) != 1 || table.Problems[0].Reason != route.HostOwned || table.Problems[0].Object.Namespace != "b" {
		t.Errorf("%v", table.Problems)
	}
	// The option turned off and on again ends where it began.
	again := route.Compile(snapshot.Of(append(objects, grab)...), route.Compile(snapshot.Of(append(objects, grab)...), table, route.Options{}), route.Options{FirstNamespace: true})
	if len(again.Problems) != 1 || match(again, "x.test", "/").Owner.Namespace != "a" {
		t.Errorf("%v", again.Problems)
	}
}

// TestWildcardAboveOfOthers: a wildcard host with TLS has the hosts below redirected, and where
// hosts belong to namespaces those of its own alone; also when its TLS comes later, and when it
// goes.
func TestWildcardAboveOfOthers(t *testing.T) {
	for _, first := range []bool{false, true} {
		objects := owned("a x.y.test /", "b *.y.test /", "b z.y.test /")
		for _, o := range objects {
			if ing, ok := o.(*networkingv1.Ingress); ok {
				ing.Annotations = map[string]string{route.NginxPrefix + "ssl-redirect": "true"}
			}
		}
		options := route.Options{FirstNamespace: first}
		c := snapshot.Of(objects...)
		table := route.Compile(c, nil, options)
		expect := func(when string, x, z bool) {
			t.Helper()
			for host, want := range map[string]bool{"x.y.test": x, "z.y.test": z} {
				if got := match(table, host, "/").RedirectTLS; got != want {
					t.Errorf("first namespace %t, %s: %s is redirected: %t", first, when, host, got)
				}
			}
		}
		expect("without TLS", false, false)
		wildcard, _ := c.Ingresses.Get(snapshot.Key{Namespace: "b", Name: "i1"})
		secure := wildcard.DeepCopy()
		secure.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"*.y.test"}}}
		table = route.Compile(c.With(secure), table, options)
		expect("with TLS", !first, true)
		table = route.Compile(c, table, options)
		expect("without it again", false, false)
	}
}

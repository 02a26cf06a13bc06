package route

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"net/netip"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
)

// thousandValues are the hostile values, and values put together of them and of
// what they are made of. They are the same each time.
func thousandValues() []string {
	values := hostileValues()
	parts := append(hostileValues(), "/admin", "/evil", "$1", "n/users", "n/web", "web.n.svc", ",", ";", " ", "=", "%0d%0a", "\u2028", "\ufeff", "(?i)", "{1000}", "|", "^", "://", "@", "127.0.0.1", "[::]")
	random := rand.New(rand.NewPCG(1, 2))
	for len(values) < 1000 {
		var b strings.Builder
		for range 1 + random.IntN(4) {
			part := parts[random.IntN(len(parts))]
			b.WriteString(part[:min(len(part), 2000)])
		}
		values = append(values, b.String())
	}
	return values
}

// spellings are ways to write paths of which some are guarded, and some would be to
// one backend or another.
func spellings() []string {
	return []string{
		"/", "/x", "/admin", "/admin/", "/admin/x", "/adminx", "/ADMIN", "/Admin/x", "//admin", "/./admin", "/x/../admin", "/x/..//admin", "/%61dmin", "/%61%64min/x",
		"/admin%2Fx", "/%2fadmin", "/x%2F..%2Fadmin", "/admin;a=b", "/x;/../admin", "/admin/..;/x", "/admin%5Cx", `/x\admin`, "/admin%00", "/admin%3Fx", "/admin?x", "/admin%2e", "/%e2%80%ae",
		"/admin" + strings.Repeat("/a", 500),
	}
}

// openSpellings are those that do not mean /admin to anybody.
func openSpellings() []string {
	return []string{"/", "/x", "/adminx", "/ADMIN", "/Admin/x", "/admin%3Fx", "/admin%2e", "/%e2%80%ae"}
}

// crime is a cluster in which Ingresses of namespace n keep /admin from strangers,
// one of them on a host that it shares.
type crime struct {
	others *snapshot.Cluster
	before *Table
	tools  filter.Tools
	asked  exchange.Exchange
	paths  map[string][]byte // of spellings, normalised; those that are refused are not there
}

func newCrime() *crime {
	web := func(namespace string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	}
	users := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "users"}, Data: map[string][]byte{"auth": []byte("ann:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=")}}
	nginx := &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "nginx"}, Spec: networkingv1.IngressClassSpec{Controller: ingressclass.NginxController}}
	c := &crime{others: snapshot.Of(web("n"), web("evil"), users, nginx), tools: filter.NewTools(maphash.MakeSeed()), paths: map[string][]byte{}}
	for _, target := range spellings() {
		if path, ok := Normalize(nil, []byte(target)); ok {
			c.paths[target] = path
		}
	}
	for _, class := range crimeClasses() {
		for _, host := range []string{class + ".test", class + ".shared.test"} {
			open, shut := fuzzIngress("n", host, nil, "/"), fuzzIngress("n", host, map[string]string{NginxPrefix + "whitelist-source-range": "10.0.0.0/8"}, "/admin")
			open.Name, shut.Name = "open-"+host, "shut-"+host
			for _, ing := range []*networkingv1.Ingress{open, shut} {
				ing.Spec.IngressClassName = &class
				c.others = c.others.With(ing)
			}
		}
	}
	c.before = Compile(c.others, nil, crimeOptions())
	return c
}

func crimeClasses() []string { return []string{ingressclass.DefaultName, "nginx"} }

func crimeOptions() Options {
	return Options{Classes: ingressclass.Rules{Adopt: []string{ingressclass.NginxController}}}
}

// commit adds Ingresses of namespace evil, of each class, on a host of their own and
// on one that they share, with one annotation.
func (c *crime) commit(key, value string) *Table {
	cluster := c.others
	for _, class := range crimeClasses() {
		own, shared := "own."+class+".evil", class+".shared.test"
		for _, ing := range []*networkingv1.Ingress{
			fuzzIngress("evil", own, map[string]string{NginxPrefix + key: value, OwnPrefix + "whitelist-source-range": "10.0.0.0/8"}, "/", "/admin/(.*)", "/a{1000}b{1000}c{1000}", "/(x{30}){30}"),
			fuzzIngress("evil", shared, map[string]string{NginxPrefix + key: value}, "/evil"),
		} {
			ing.Spec.IngressClassName = &class
			cluster = cluster.With(ing)
		}
	}
	return Compile(cluster, c.before, crimeOptions())
}

// ask tells what a stranger meets who asks for a target: whose route, and whether it
// lets the stranger pass.
func (c *crime) ask(t *Table, host, target string) (owner string, passes bool) {
	ex := &c.asked
	ex.Reset()
	if ex.Request.Path = c.paths[target]; ex.Request.Path == nil {
		return "400", false
	}
	ex.Request.Method, ex.Request.Host, ex.Request.Target = []byte("GET"), []byte(host), []byte(target)
	ex.Request.Client = netip.MustParseAddrPort("192.0.2.1:1")
	found, guard := t.Match(&ex.Request)
	if found == nil {
		return "404", false
	}
	for _, r := range []*Route{guard, found} {
		if r == nil {
			continue
		}
		if refuses := r.Filters != nil && r.Filters.Access != nil && !filter.Guards(r.Filters, c.tools).Request(ex); r.Closed != "" || refuses {
			return r.Owner.Key.String(), false
		}
	}
	return found.Owner.Key.String(), true
}

// TestThousandMaliciousValues puts each of a thousand values under some of all keys,
// so that every key meets many. Whatever they are, others keep their routes and what
// is told to them, no spelling of a guarded path opens, no Secret of another
// namespace is named, and no pattern is larger than what is quick to match.
func TestThousandMaliciousValues(t *testing.T) {
	const keysEach = 2
	c, table := newCrime(), optionTable()
	type answer struct {
		owner  string
		passes bool
	}
	hosts := []string{"nginx.test", "quayside.shared.test", "nginx.shared.test"}
	want := map[string]answer{}
	for _, host := range hosts {
		for _, target := range spellings() {
			owner, passes := c.ask(c.before, host, target)
			want[host+target] = answer{owner, passes}
			if open := slices.Contains(openSpellings(), target); passes != open {
				t.Fatalf("%s%s passes %v from the beginning", host, target, passes)
			}
		}
	}
	sorted := func(t *Table) string { // where paths are patterns, the longest comes first
		return strings.Join(slices.Sorted(strings.Lines(routesOf(t, "n"))), "")
	}
	routes := sorted(c.before)
	for i, value := range thousandValues() {
		for j := range keysEach {
			key := table[(i*keysEach+j)%len(table)].key
			after := c.commit(key, value)
			said := fmt.Sprintf("%s: %.100q", key, value)
			if got := sorted(after); got != routes {
				t.Fatalf("%s changed the routes of others from\n%s to\n%s", said, routes, got)
			}
			for _, host := range hosts {
				for _, target := range spellings() {
					owner, passes := c.ask(after, host, target)
					before := want[host+target]
					quirk := host == "nginx.shared.test" // where one asks for patterns, all paths of the host are
					if passes && !before.passes || !quirk && (owner != before.owner || passes != before.passes) {
						t.Fatalf("%s: %s%.100s meets %s, passes %v, where it was %s, %v", said, host, target, owner, passes, before.owner, before.passes)
					}
				}
			}
			c.inspect(t, said, after)
		}
	}
}

// inspect looks at what the Ingresses of namespace evil have got.
func (c *crime) inspect(t *testing.T, said string, table *Table) {
	t.Helper()
	for _, p := range table.Problems {
		if p.Object.Namespace == "n" {
			t.Fatalf("%s is told to others: %s", said, p)
		}
	}
	for _, key := range append(table.Secrets(), table.ConfigMaps()...) {
		if key.Namespace != "evil" {
			t.Fatalf("%s names %s", said, key)
		}
	}
	for r := range table.Routes() {
		if r.Owner.Namespace != "evil" {
			continue
		}
		if strings.HasPrefix(r.Host, "own.") && !r.guards() {
			t.Fatalf("%s opens %s%s", said, r.Host, r.Path)
		}
		if r.pattern == nil {
			continue
		}
		parsed, err := syntax.Parse(r.pattern.String(), syntax.Perl)
		if err != nil {
			t.Fatalf("%s: %v", said, err)
		}
		if prog, err := syntax.Compile(parsed.Simplify()); err != nil || len(prog.Inst) > filter.MaxProgram {
			t.Fatalf("%s makes a pattern of %d instructions, %v", said, len(prog.Inst), err)
		}
	}
}

package explain

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/snapshot"
)

// Where several namespaces serve a host its owner can see who answers for what, be it
// for one Exact path alone, which takes nothing that an Ingress of his own names.
func TestStatusShowsWhoSharesAHost(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	rule := func(namespace, name, host, path string, kind networkingv1.PathType, age time.Duration) snapshot.Object {
		i := site(nil)
		i.Namespace, i.Name, i.Spec.TLS, i.CreationTimestamp = namespace, name, nil, metav1.NewTime(now.Add(-age))
		i.Spec.Rules[0].Host = host
		i.Spec.Rules[0].HTTP.Paths[0].Path, i.Spec.Rules[0].HTTP.Paths[0].PathType = path, &kind
		return i
	}
	c := snapshot.Of(
		rule("z", "site", "shop.example.com", "/", networkingv1.PathTypePrefix, 3*time.Hour),
		rule("z", "more", "shop.example.com", "/cart", networkingv1.PathTypePrefix, time.Hour),
		rule("a", "grab", "shop.example.com", "/login", networkingv1.PathTypeExact, 2*time.Hour),
		rule("a", "lost", "shop.example.com", "/cart", networkingv1.PathTypePrefix, time.Minute),
		rule("b", "grab", "shop.example.com", "/pay", networkingv1.PathTypePrefix, time.Minute),
		rule("a", "own", "a.example.com", "/", networkingv1.PathTypePrefix, time.Hour),
		rule("a", "any", "", "/a", networkingv1.PathTypePrefix, time.Hour),
		rule("b", "any", "", "/b", networkingv1.PathTypePrefix, time.Hour),
	)
	report := Status(inputsOf(c, now, false, false))
	want := []SharedHost{{Host: "shop.example.com", Owner: "z", Ingress: "z/site", Foreign: []ForeignPaths{
		{"a", []string{"/login (Exact)"}}, {"b", []string{"/pay (Prefix)"}},
	}}}
	if diff := cmp.Diff(want, report.Hosts); diff != "" {
		t.Error(diff)
	}
	var screen bytes.Buffer
	if err := report.WriteText(&screen); err != nil {
		t.Fatal(err)
	}
	if rows := `
HOST OF SEVERAL    NAMED FIRST BY       ALSO SERVED BY
shop.example.com   z (Ingress z/site)   a: /login (Exact)
                                        b: /pay (Prefix)
`; !strings.Contains(screen.String(), rows) {
		t.Errorf("%s is not on the screen:\n%s", rows, screen.String())
	}
}

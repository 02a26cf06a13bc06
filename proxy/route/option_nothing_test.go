package route

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"quayside.io/cluster/ingressclass"
	"quayside.io/proxy/filter"
)

// manyValues are some of each kind that options have, and some of none.
func manyValues() []string {
	return []string{"true", "false", "on", "off", "0", "1", "7", "100", "8k", "5s", "1m", "2g", "x", "-1", "1 m", "5 s", "1.5", "99999999999999999999", "\x01", "*", "(", "${", "http://",
		"a b", "a,b", "GET", "get", "301", "404", "999", "4 8k", "4 8 k", "a.example", "a.example, b c", "10.0.0.0/8", "10.0.0.0/8, x", "10.0.0.0/33", "$host", "$nothing",
		"/a", "/a, /b", "/x /y", "/a\n/b", "= /a 404", "~ (", "^a(.*)$", "X-A, X-B", "X-A, X B", "X-A: b", "X-A: b\nX B: c", "http://a.example", "http://a.example, b", "https://a.example/x?y=$uri",
		"cookie", "persistent", "sticky", "legacy", "Lax", "any", "basic", "auth-map", "optional", "ns/name", "none", "200 1m", "200 1m, 404 5m", "200 x", "error timeout", "error x",
		"round_robin", "ewma", "1.1", "HTTP", "HTTPS", "GRPC", "TLSv1.2 TLSv1.3", "TLSv1.4", "ECDHE-RSA-AES128-GCM-SHA256", "text/plain", "text"}
}

// changes looks for a value that is not understood and takes away what one before it, or none, has
// set. With returns what there is after some values.
func changes[T any](with func(values ...string) (T, error)) (good []string, bad string, found bool) {
	none, _ := with()
	befores, goods := []T{none}, [][]string{nil}
	for _, value := range manyValues() {
		if is, err := with(value); err == nil && len(goods) < 2 {
			befores, goods = append(befores, is), append(goods, []string{value})
		}
	}
	for _, bad := range manyValues() {
		for i, good := range goods {
			after, err := with(slices.Concat(good, []string{bad})...)
			acts := err == nil || errors.As(err, new(partly)) || errors.Is(err, errInPart)
			if !acts && !reflect.DeepEqual(befores[i], after) {
				return good, bad, true
			}
		}
	}
	return nil, "", false
}

// An annotation that is not understood has no effect: what it would replace stays, such as what
// the ConfigMap says. Those of guards close the route.
func TestAnAnnotationThatIsNotUnderstoodChangesNothing(t *testing.T) {
	for _, o := range optionTable() {
		if o.parse == nil || o.guard {
			continue
		}
		good, bad, found := changes(func(values ...string) (s settings, err error) {
			s = defaults(ingressclass.Class{Nginx: true})
			s.filters.Limits = &filter.Limits{} // which any limit makes
			for _, value := range values {
				err = o.parse(&s, value)
			}
			return s, err
		})
		switch {
		case o.key == "canary" || o.key == "cors-allow-origin": // the Ingress has no routes then, or no site may read
			if !found {
				t.Errorf("%s is known to close, and does not", o.key)
			}
		case found:
			t.Errorf("%s: %q changes what it is after %q", o.key, bad, good)
		}
	}
}

// The same for what holds for all Ingresses.
func TestAnOptionThatIsNotUnderstoodChangesNothing(t *testing.T) {
	for _, o := range globalTable() {
		if o.parse == nil || o.guard {
			continue
		}
		good, bad, found := changes(func(values ...string) (w globalOptions, err error) {
			w = globalOptions{own: defaults(ingressclass.Class{}), nginx: defaults(ingressclass.Class{Nginx: true}), front: &filter.Front{}, spans: collectorDefaults()}
			for _, value := range values {
				err = o.parse(&w, value)
			}
			for i := range w.named {
				w.named[i].obey = nil // no two functions are the same
			}
			return w, err
		})
		if found {
			t.Errorf("%s: %q changes what it is after %q", o.key, bad, good)
		}
	}
}

package route

import (
	"strings"
	"testing"

	"quayside.io/cluster/ingressclass"
)

// A realm without auth-type, as it is found beside auth-url, guards nothing in
// ingress-nginx: auth-url goes on doing that. Where nothing else does, somebody believes
// that it does.
func TestRealmWithoutAuthType(t *testing.T) {
	for _, c := range []struct {
		with   map[string]string
		closed bool
		told   string
	}{
		{map[string]string{"auth-realm": "Staff", "auth-url": "http://auth.example/check"}, false, "annotation auth-realm has no effect without auth-type: basic"},
		{map[string]string{"auth-secret-type": "auth-map", "auth-realm": "Staff", "auth-url": "http://auth.example/check"}, false, "annotation auth-realm has no effect"},
		{map[string]string{"auth-realm": "Staff", "auth-secret": "users", "auth-url": "http://auth.example/check"}, true, "annotation auth-secret guards access"},
		{map[string]string{"auth-realm": "Staff"}, true, "annotation auth-realm guards access and there is no auth-type"},
		{map[string]string{"auth-type": "basic", "auth-realm": "Staff"}, true, "annotation auth-secret guards access and is missing"},
	} {
		annotations := map[string]string{}
		for key, value := range c.with {
			annotations[NginxPrefix+key] = value
		}
		s, findings := optionsOf(optionTable, annotations, defaults(ingressclass.Class{}), noRefs{})
		if (s.closed != "") != c.closed {
			t.Errorf("%v: closed %q", c.with, s.closed)
		}
		if !c.closed && s.filters.External == nil {
			t.Errorf("%v: nobody is asked", c.with)
		}
		if len(findings) == 0 || !strings.Contains(findings[0].message, c.told) {
			t.Errorf("%v: told %v, want %q", c.with, findings, c.told)
		}
	}
}

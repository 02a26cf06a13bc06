package route

import (
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
)

// A default-backend that stands in for a Service that is gone cannot answer a connection
// that nobody decrypts: it is ended, and requests without TLS are answered.
func TestPassthroughToWhatIsMissing(t *testing.T) {
	ing := fuzzIngress("n", "a.test", map[string]string{NginxPrefix + "ssl-passthrough": "true", NginxPrefix + "default-backend": "web"}, "/")
	ing.Spec.Rules[0].HTTP.Paths[0].Backend.Service = &networkingv1.IngressServiceBackend{Name: "gone", Port: networkingv1.ServiceBackendPort{Number: 80}}
	table := Compile(newCrime().others.With(ing), nil, crimeOptions())
	if p := table.Passthrough("a.test"); p == nil || p.Backend != -1 || !strings.Contains(p.Closed, "default-backend") {
		t.Errorf("connections go to %+v", p)
	}
	for r := range table.Routes() {
		if r.Host == "a.test" && (r.Closed != "" || r.Errors == nil) {
			t.Errorf("requests without TLS get %+v", r)
		}
	}
}

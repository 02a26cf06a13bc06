package chart

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestPublished: Ingresses name the addresses of the proxies' Service, and those of the
// nodes where the proxies are reached there and have none of a Service.
func TestPublished(t *testing.T) {
	const (
		service = "--publish-service=quayside-proxy/quayside-proxy"
		hosts   = "--publish-hosts=quayside-proxy/quayside-proxy-hosts"
	)
	for values, want := range map[string][]string{
		``:                                     {service},
		`{proxy: {service: {enabled: false}}}`: nil,
		`{proxy: {service: {type: NodePort}}}`: {service},
		`{proxy: {hostNetwork: {enabled: true}}}`:                                                                {service},
		`{proxy: {hostNetwork: {enabled: true}, service: {enabled: false}}}`:                                     {hosts},
		`{proxy: {hostNetwork: {enabled: true}, service: {type: ClusterIP}}}`:                                    {hosts},
		`{proxy: {hostPorts: {http: 80, https: 443}, service: {type: NodePort}}}`:                                {hosts},
		`{proxy: {hostPorts: {http: 80}, service: {type: ClusterIP, externalIPs: [192.0.2.1]}}}`:                 {service},
		`{proxy: {hostPorts: {http: 80}, service: {enabled: false}}, controller: {publishService: a/b}}`:         {"--publish-service=a/b"},
		`{proxy: {hostPorts: {http: 80}, service: {enabled: false}}, controller: {publishAddresses: [1.2.3.4]}}`: {"--publish-address=1.2.3.4"},
		`{proxy: {enabled: false, hostNetwork: {enabled: true}}}`:                                                nil,
	} {
		var got []string
		for _, arg := range start(t, workloads(t, values)["controller"]).Args {
			if strings.HasPrefix(arg, "--publish-") {
				got = append(got, arg)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: the controller is started with %q, want %q", values, got, want)
		}
		if has := serviceOfHosts(t, values) != nil; has != slices.Equal(want, []string{hosts}) {
			t.Errorf("%s: there is a Service of the nodes: %t", values, has)
		}
	}
	svc := serviceOfHosts(t, `{proxy: {hostNetwork: {enabled: true}, service: {enabled: false}}}`)
	if svc == nil || svc.Spec.ClusterIP != corev1.ClusterIPNone || svc.Spec.Selector["app.kubernetes.io/component"] != "proxy" || !strings.HasSuffix(svc.Namespace, "-proxy") {
		t.Errorf("the Service of the nodes: %+v", svc)
	}
}

// serviceOfHosts returns the Service by which the nodes are known; nil: there is none.
func serviceOfHosts(t *testing.T, text string) *corev1.Service {
	t.Helper()
	for _, o := range rendered(t, values(t, text)) {
		if svc, ok := o.(*corev1.Service); ok && strings.HasSuffix(svc.Name, "-proxy-hosts") {
			return svc
		}
	}
	return nil
}

// TestRedirectPort: redirects to https name the port that clients see, where that is
// another than theirs.
func TestRedirectPort(t *testing.T) {
	for values, want := range map[string]string{
		``: "",
		`{proxy: {service: {ports: {https: 8443}}}}`:                                                           "8443",
		`{proxy: {hostPorts: {https: 8443}}}`:                                                                  "",
		`{proxy: {hostPorts: {https: 8443}, service: {enabled: false}}}`:                                       "8443",
		`{proxy: {hostPorts: {http: 80}, service: {enabled: false}}}`:                                          "",
		`{proxy: {hostNetwork: {enabled: true}, ports: {http: 80, https: 443}, service: {enabled: false}}}`:    "",
		`{proxy: {hostNetwork: {enabled: true}, ports: {http: 8080, https: 8443}, service: {enabled: false}}}`: "8443",
	} {
		got := ""
		for _, arg := range start(t, workloads(t, values)["proxy"]).Args {
			if port, ok := strings.CutPrefix(arg, "--redirect-port="); ok {
				got = port
			}
		}
		if got != want {
			t.Errorf("%s: redirects name port %q, want %q", values, got, want)
		}
	}
}

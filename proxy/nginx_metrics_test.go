package proxy_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/proxy"
	"quayside.io/proxy/dispatch"
	"quayside.io/test/certificate"
)

// What dashboards and alerts of ingress-nginx ask for beside requests: certificates,
// connections, and whether the configuration is in force; and when certificates expire
// under our own name.
func TestNginxMetrics(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	began := time.Now().Add(-time.Second)
	files, p := start(t, func(o *proxy.Options) {
		o.Registerer, o.Nginx = registry, &dispatch.NginxNames{Class: "quayside.io/ingress", Namespace: "edge", Pod: "p1"}
	})
	notAfter := time.Now().Add(30 * 24 * time.Hour)
	ing := ingress("shop", "shop.example", "/", "web", number)
	ing.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"shop.example"}, SecretName: "shop"}}
	files.Put(service("web", corev1.ServicePort{Port: 80}), certificate.Secret(t, "default/shop", notAfter, "shop.example"), ing)
	eventually(t, "the certificate is shown", func() bool { return len(shown(t, registry, "nginx_ingress_controller_ssl_expire_time_seconds")) == 1 })
	for name, labels := range map[string]map[string]string{
		"nginx_ingress_controller_ssl_expire_time_seconds":     {"host": "shop.example", "namespace": "edge", "class": "quayside.io/ingress"},
		"quayside_tls_certificate_not_after_timestamp_seconds": {"host": "shop.example"},
	} {
		series := shown(t, registry, name)
		if len(series) != 1 || series[0].value != float64(notAfter.Unix()) || !series[0].has(labels) {
			t.Errorf("%s: %v, want %d with %v", name, series, notAfter.Unix(), labels)
		}
	}
	own := map[string]string{"controller_class": "quayside.io/ingress", "controller_namespace": "edge", "controller_pod": "p1"}
	for name, good := range map[string]func(v float64) bool{
		"nginx_ingress_controller_config_last_reload_successful":                   func(v float64) bool { return v == 1 },
		"nginx_ingress_controller_config_last_reload_successful_timestamp_seconds": func(v float64) bool { return v >= float64(began.Unix()) && v < float64(time.Now().Unix()+2) },
	} {
		if series := shown(t, registry, name); len(series) != 1 || !good(series[0].value) || !series[0].has(own) {
			t.Errorf("%s: %v", name, series)
		}
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	resp, err := client.Get("https://" + bound(p, true) + "/")
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	state := func(name string) (n float64) {
		for _, s := range shown(t, registry, "nginx_ingress_controller_nginx_process_connections") {
			if s.has(map[string]string{"state": name}) {
				n += s.value
			}
		}
		return n
	}
	eventually(t, "the connection waits for its next request", func() bool { return state("active") == 1 && state("waiting") == 1 && state("writing") == 0 })
	if series := shown(t, registry, "nginx_ingress_controller_requests"); len(series) == 0 {
		t.Error("no request is counted")
	}
}

// gauged is one series of a gauge.
type gauged struct {
	labels map[string]string
	value  float64
}

// shown are the series of a metric.
func shown(t *testing.T, from prometheus.Gatherer, name string) (all []gauged) {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			s := gauged{map[string]string{}, m.GetGauge().GetValue()}
			for _, l := range m.GetLabel() {
				s.labels[l.GetName()] = l.GetValue()
			}
			all = append(all, s)
		}
	}
	return all
}

// has reports whether a series has some labels.
func (g gauged) has(labels map[string]string) bool {
	for name, value := range labels {
		if g.labels[name] != value {
			return false
		}
	}
	return true
}

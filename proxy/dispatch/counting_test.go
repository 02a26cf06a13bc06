package dispatch_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/proxy/dispatch"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/route"
)

// shown are the series of d whose names begin in one of some ways, as
// "name a=b c=d" with the value; of a histogram those are its count, its sum and its
// buckets.
func shown(t *testing.T, d *dispatch.Dispatcher, prefixes ...string) map[string]float64 {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(d.Collector())
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		if !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(f.GetName(), p) }) {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := ""
			for _, l := range m.GetLabel() {
				if !strings.HasPrefix(l.GetName(), "controller_") {
					labels += " " + l.GetName() + "=" + l.GetValue()
				}
			}
			h := m.GetHistogram()
			if h == nil {
				all[f.GetName()+labels] = m.GetCounter().GetValue()
				continue
			}
			all[f.GetName()+"_count"+labels], all[f.GetName()+"_sum"+labels] = float64(h.GetSampleCount()), h.GetSampleSum()
			for _, b := range h.GetBucket() {
				all[fmt.Sprintf("%s_bucket%s le=%v", f.GetName(), labels, b.GetUpperBound())] = float64(b.GetCumulativeCount())
			}
		}
	}
	return all
}

// hosts has rules for some hosts, instead of a default backend.
func hosts(names ...string) *route.Table {
	return newTable(func(ing *networkingv1.Ingress) {
		to := *ing.Spec.DefaultBackend
		ing.Spec.DefaultBackend = nil
		for _, name := range names {
			ing.Spec.Rules = append(ing.Spec.Rules, networkingv1.IngressRule{Host: name, IngressRuleValue: networkingv1.IngressRuleValue{
				HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{Path: "/", Backend: to}}},
			}})
		}
	})
}

// A client cannot make up series: hosts are those that rules name, and as many as there
// may be, methods are HTTP's own. What has no rule any more is forgotten.
func TestHostsAndMethodsAreBounded(t *testing.T) {
	var ex exchange.Exchange
	answer := []dispatch.Forwarder{forwarderFunc(func(ex *exchange.Exchange) { ex.Answer(200, "ok") })}
	d := dispatch.New(dispatch.Options{CountHosts: 3})
	d.SetTable(hosts("a.example", "*.b.example", "c.example", "d.example", ""), answer)
	for _, host := range []string{"a.example", "A.example:80", "x.b.example", "y.b.example", "c.example", "d.example", "made.up", "other.example"} {
		askFor(d, &ex, host, "/")
	}
	const of = "quayside_http_host_requests_total code_class=2xx host="
	if diff := cmp.Diff(map[string]float64{of + "a.example": 2, of + "*.b.example": 2, of + "c.example": 1, of + "other": 3}, shown(t, d, "quayside_http_host")); diff != "" {
		t.Error(diff)
	}
	d.SetTable(hosts("c.example", "e.example"), answer)
	askFor(d, &ex, "e.example", "/")
	askFor(d, &ex, "nobody.example", "/")
	want := map[string]float64{of + "c.example": 1, of + "e.example": 1, of + "other": 3, "quayside_http_host_requests_total code_class=4xx host=other": 1}
	if diff := cmp.Diff(want, shown(t, d, "quayside_http_host")); diff != "" {
		t.Error(diff)
	}

	d = dispatch.New(dispatch.Options{})
	d.SetTable(hosts("a.example"), answer)
	for _, method := range []string{"GET", "GET", "POST", "TRACE", "get", "MADE-UP"} {
		ex.Reset()
		ex.Request.Method, ex.Request.Host, ex.Request.Target, ex.Request.Path = []byte(method), []byte("a.example"), []byte("/"), []byte("/")
		d.Handle(&ex)
		ex.Observer.Finished(&ex, false)
	}
	const by = "quayside_http_method_requests_total code_class=2xx method="
	if diff := cmp.Diff(map[string]float64{by + "GET": 2, by + "POST": 1, by + "TRACE": 1, by + "other": 2}, shown(t, d, "quayside_http_method", "quayside_http_host")); diff != "" {
		t.Error(diff)
	}
}

// asks is what one request is measured by: endpoints of which the last answered.
func asks(ex *exchange.Exchange) {
	ex.Answer(200, "ok")
	ex.Request.Size, ex.Response.Sent = 300, 2000
	ex.Upstream.Began = ex.Request.Received
	ex.Upstream.Tries = append(ex.Upstream.Tries, exchange.Try{Connect: time.Second, Took: time.Second},
		exchange.Try{Status: 200, Connect: 3 * time.Millisecond, Header: 40 * time.Millisecond, Took: 2 * time.Second})
	ex.Upstream.Waited = 3 * time.Second
}

func TestPhasesAndSizes(t *testing.T) {
	d := dispatch.New(dispatch.Options{})
	d.SetTable(newTable(nil), []dispatch.Forwarder{forwarderFunc(asks)})
	var ex exchange.Exchange
	askFor(d, &ex, "a", "/")
	askFor(d, &ex, "a", "/")
	got := shown(t, d, "quayside_http_upstream_", "quayside_http_request_bytes", "quayside_http_response_bytes")
	const labels = " ingress=web namespace=default service=web"
	for series, want := range map[string]float64{
		"quayside_http_upstream_connect_seconds_count": 2, "quayside_http_upstream_connect_seconds_sum": 0.006,
		"quayside_http_upstream_header_seconds_count": 2, "quayside_http_upstream_header_seconds_sum": 0.08,
		"quayside_http_upstream_response_seconds_count": 2, "quayside_http_upstream_response_seconds_sum": 4,
		"quayside_http_request_bytes_total": 600, "quayside_http_response_bytes_total": 4000,
	} {
		if v, there := got[series+labels]; !there || v != want {
			t.Errorf("%s is %v (%v), want %v", series, v, there, want)
		}
	}
	for le, want := range map[string]float64{"0.016": 0, "0.064": 2, "0.256": 2} { // every other limit
		if v, there := got["quayside_http_upstream_header_seconds_bucket"+labels+" le="+le]; !there || v != want {
			t.Errorf("%v responses began within %s s (%v), want %v", v, le, there, want)
		}
	}
}

// The names, labels and meanings are those that dashboards of ingress-nginx ask for.
func TestNginxNames(t *testing.T) {
	d := dispatch.New(dispatch.Options{Nginx: &dispatch.NginxNames{Class: "c", Namespace: "n", Pod: "p"}})
	table := hosts("a.example", "*.b.example", "")
	for r := range table.Unordered() {
		if r.Host == "a.example" {
			r.Split = []route.Weighted{{Backend: 0, Weight: 1}}
		}
	}
	to := ""
	d.SetTable(table, []dispatch.Forwarder{forwarderFunc(func(ex *exchange.Exchange) { asks(ex); ex.Upstream.Name = to })})
	var ex exchange.Exchange
	to = "default-web-80"
	askFor(d, &ex, "a.example", "/")
	askFor(d, &ex, "x.b.example", "/x")
	askFor(d, &ex, "y.example", "/y")
	for _, to = range []string{"default-next-80", "default-last-80", "default-next-80"} {
		askFor(d, &ex, "a.example", "/")
	}
	series := func(canary, host string) string {
		return " canary=" + canary + " host=" + host + " ingress=web method=GET namespace=default path=/ service=web status=200"
	}
	got := shown(t, d, "nginx_ingress_controller_requests")
	if diff := cmp.Diff(map[string]float64{
		"nginx_ingress_controller_requests" + series("", "a.example"):                1,
		"nginx_ingress_controller_requests" + series("default-next-80", "a.example"): 2,
		"nginx_ingress_controller_requests" + series("default-last-80", "a.example"): 1,
		"nginx_ingress_controller_requests" + series("", "*.b.example"):              1,
		"nginx_ingress_controller_requests" + series("", "_"):                        1,
	}, got); diff != "" {
		t.Error(diff)
	}
	got = shown(t, d, "nginx_ingress_controller_")
	of := series("", "a.example")
	for name, want := range map[string]float64{
		"connect_duration_seconds_sum" + of: 0.003, "header_duration_seconds_sum" + of: 0.04, "response_duration_seconds_sum" + of: 2,
		"request_duration_seconds_count" + of: 1, "request_size_sum" + of: 300, "response_size_sum" + of: 2000,
		"header_duration_seconds_bucket" + of + " le=0.025": 0, "header_duration_seconds_bucket" + of + " le=0.05": 1,
		"request_size_bucket" + of + " le=100": 0, "request_size_bucket" + of + " le=1000": 1,
	} {
		if v, there := got["nginx_ingress_controller_"+name]; !there || v != want {
			t.Errorf("%s is %v (%v), want %v", name, v, there, want)
		}
	}
	d.SetTable(hosts("a.example"), nil)
	for name := range shown(t, d, "nginx_ingress_controller_requests") {
		if !strings.Contains(name, "host=a.example") {
			t.Errorf("%s is there still", name)
		}
	}
}

// Counting in all ways costs no allocation where a route is warm.
func TestCountingAllocatesNothing(t *testing.T) {
	d := dispatch.New(dispatch.Options{CountHosts: 10, Nginx: &dispatch.NginxNames{}})
	table := hosts("a.example")
	for r := range table.Unordered() {
		r.Split = []route.Weighted{{Backend: 0, Weight: 1}}
	}
	d.SetTable(table, []dispatch.Forwarder{forwarderFunc(func(ex *exchange.Exchange) { asks(ex); ex.Upstream.Name = "default-next-80" })})
	var ex exchange.Exchange
	host, target, method := []byte("a.example"), []byte("/"), []byte("GET")
	ask := func() {
		ex.Reset()
		ex.Request.Method, ex.Request.Host, ex.Request.Target, ex.Request.Path, ex.Request.Received = method, host, target, target, time.Now()
		d.Handle(&ex)
		ex.Observer.Finished(&ex, false)
	}
	ask()
	if n := testing.AllocsPerRun(200, ask); n != 0 && !racing {
		t.Errorf("%v allocations", n)
	}
}

// A scrape looks at the routes once, and again when something new is counted.
func TestRoutesAreWalkedOncePerTable(t *testing.T) {
	answer := []dispatch.Forwarder{forwarderFunc(func(ex *exchange.Exchange) { ex.Answer(200, "ok") })}
	d := dispatch.New(dispatch.Options{})
	names := make([]string, 2000)
	for i := range names {
		names[i] = fmt.Sprintf("h%d.example", i)
	}
	d.SetTable(hosts(names...), answer)
	var ex exchange.Exchange
	askFor(d, &ex, "h1.example", "/")
	scrape := func() {
		ch := make(chan prometheus.Metric, 1000)
		d.Collector().Collect(ch)
	}
	began := time.Now()
	scrape()
	walked := time.Since(began)
	best := time.Hour
	for range 100 {
		began = time.Now()
		scrape()
		best = min(best, time.Since(began))
	}
	if best > walked/2 {
		t.Errorf("a scrape after the first takes %v, where the first took %v", best, walked)
	}
}

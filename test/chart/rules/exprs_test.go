package rules

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
)

// panel is one of a dashboard.
type panel struct {
	Title   string
	Targets []struct{ Expr, LegendFormat string }
}

// panels are those of the chart's dashboards.
func panels(t *testing.T, objects []object) (all []panel) {
	t.Helper()
	for _, o := range objects {
		if o.Metadata.Labels["grafana_dashboard"] == "" {
			continue
		}
		for file, text := range o.Data {
			var dashboard struct{ Panels []panel }
			if err := json.Unmarshal([]byte(text), &dashboard); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			all = append(all, dashboard.Panels...)
		}
	}
	return all
}

const watched = `metrics: {serviceMonitor: {enabled: true}, dashboards: {enabled: true}, prometheusRule: {enabled: true}}`

// TestExpressions: every metric that an alert, a panel or a page asks for is one that
// docs/metrics.md lists, and so is every label that it chooses or groups by, beside those
// that Prometheus gives the series of a target.
func TestExpressions(t *testing.T) {
	objects := rendered(t, watched)
	of, n := documented(t), 0
	of["up"] = nil
	own := map[string]bool{}
	for _, o := range targets(t, objects) {
		for name := range o.labels.Map() {
			own[name] = true
		}
	}
	check := func(where, expr string) map[string]bool {
		t.Helper()
		n++
		parsed, err := reader().ParseExpr(expr)
		if err != nil {
			t.Errorf("%s: %v", where, err)
			return nil
		}
		return checked(t, where, parsed, of, own)
	}
	for name, rule := range alertsOf(t, objects) {
		check(name, rule.Expr)
	}
	legend := regexp.MustCompile(`\{\{(\w+)\}\}`)
	for _, p := range panels(t, objects) {
		for _, q := range p.Targets {
			has := check(p.Title, q.Expr)
			for _, named := range legend.FindAllStringSubmatch(q.LegendFormat, -1) {
				if has != nil && !has[named[1]] {
					t.Errorf("%s: the legend names %s, which %s does not leave", p.Title, named[1], q.Expr)
				}
			}
		}
	}
	if n < 50 {
		t.Errorf("%d expressions: this test looks in the wrong place", n)
	}
	pages(t, func(where, expr string) { check(where, expr) })
	for _, expr := range asNginxAsks() {
		check("a dashboard of ingress-nginx", expr)
	}
}

// asNginxAsks are questions in the way of dashboards and alerts for ingress-nginx.
func asNginxAsks() []string {
	const of = `controller_pod=~".+", controller_class=~"quayside.io/ingress", controller_namespace=~".+"`
	return []string{
		`round(sum(irate(nginx_ingress_controller_requests{` + of + `, namespace=~"shop|x", ingress=~".*"}[2m])) by (ingress), 0.001)`,
		`sum(rate(nginx_ingress_controller_requests{` + of + `, status!~"[4-5].*"}[2m])) / sum(rate(nginx_ingress_controller_requests{` + of + `}[2m]))`,
		`sum by (method, host, path, status, canary) (rate(nginx_ingress_controller_requests[5m]))`,
		`sum(avg_over_time(nginx_ingress_controller_nginx_process_connections{` + of + `, state="active"}[2m]))`,
		`histogram_quantile(0.95, sum by (le, ingress) (rate(nginx_ingress_controller_request_duration_seconds_bucket{ingress!=""}[5m])))`,
		`sum by (ingress) (rate(nginx_ingress_controller_response_duration_seconds_sum[5m])) / sum by (ingress) (rate(nginx_ingress_controller_response_duration_seconds_count[5m]))`,
		`histogram_quantile(0.5, sum by (le) (rate(nginx_ingress_controller_header_duration_seconds_bucket[5m])))`,
		`histogram_quantile(0.5, sum by (le) (rate(nginx_ingress_controller_connect_duration_seconds_bucket[5m])))`,
		`sum(irate(nginx_ingress_controller_request_size_sum{` + of + `}[2m]))`,
		`sum(irate(nginx_ingress_controller_response_size_sum{` + of + `}[2m]))`,
		`avg(nginx_ingress_controller_ssl_expire_time_seconds{host!="_", class=~".+", namespace=~".+"}) by (host) - time()`,
		`count(nginx_ingress_controller_config_last_reload_successful{` + of + `} == 0) or vector(0)`,
		`time() - nginx_ingress_controller_config_last_reload_successful_timestamp_seconds`,
	}
}

// checked returns the labels that the series of an expression may have.
func checked(t *testing.T, where string, e parser.Node, of map[string][]string, own map[string]bool) map[string]bool {
	t.Helper()
	may := map[string]bool{}
	for child := range parser.ChildrenIter(e) {
		maps.Copy(may, checked(t, where, child, of, own))
	}
	switch e := e.(type) {
	case *parser.VectorSelector:
		base := e.Name
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if _, there := of[base]; !there {
				base = strings.TrimSuffix(base, suffix)
			}
		}
		known, there := of[base]
		if !there {
			t.Errorf("%s asks for %s, which docs/metrics.md does not list", where, e.Name)
		}
		maps.Copy(may, own)
		for _, name := range known {
			may[name] = true
		}
		if base != e.Name {
			may["le"] = true
		}
		for _, m := range e.LabelMatchers {
			if m.Name != "__name__" && !may[m.Name] {
				t.Errorf("%s chooses %s by %s, which it has not", where, e.Name, m.Name)
			}
		}
	case *parser.AggregateExpr:
		for _, name := range e.Grouping {
			if !may[name] {
				t.Errorf("%s groups by %s, which nothing in %s has", where, name, e)
			}
		}
		if e.Op == parser.TOPK || e.Op == parser.BOTTOMK {
			break
		}
		if e.Without {
			for _, name := range e.Grouping {
				delete(may, name)
			}
			break
		}
		may = map[string]bool{}
		for _, name := range e.Grouping {
			may[name] = true
		}
	}
	return may
}

// pages gives every expression in the documentation to a function.
func pages(t *testing.T, each func(where, expr string)) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(paths) < 5 {
		t.Fatalf("%d pages, %v", len(paths), err)
	}
	code := regexp.MustCompile("`([^`\n]*quayside_[^`\n]*[({][^`\n]*)`")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range code.FindAllStringSubmatch(string(text), -1) {
			each(filepath.Base(path), found[1])
		}
	}
}

// TestPanelsShowSomething: where every metric has been scraped, no panel is empty: what
// is divided by one another has the same labels.
func TestPanelsShowSomething(t *testing.T) {
	objects := rendered(t, watched)
	w := &world{targets: targets(t, objects)}
	w.add("", "up", nil, steady(1))
	all := documented(t)
	usual := map[string][]string{
		"code": {"200", "502"}, "status": {"200"}, "controller_class": {"quayside.io/ingress"}, "state": {"missing", "alive", "assigned", "available", "active"}, "result": {"written", "dropped"},
	}
	for _, metric := range slices.Sorted(maps.Keys(all)) {
		series := []map[string]string{{}}
		for _, label := range all[metric] {
			values := usual[label]
			if values == nil {
				values = []string{"x"}
			}
			var more []map[string]string
			for _, labels := range series {
				for _, value := range values {
					next := maps.Clone(labels)
					next[label] = value
					more = append(more, next)
				}
			}
			series = more
		}
		for _, labels := range series {
			w.add("", metric, labels, steady(1))
			if strings.HasSuffix(metric, "_total") || metric == "nginx_ingress_controller_requests" {
				w.change(metric, whichever, func(course) course { return growing(1) })
			}
			if !strings.HasSuffix(metric, "_seconds") && !strings.HasSuffix(metric, "_size") {
				continue
			}
			w.add("", metric+"_sum", labels, growing(1))
			w.add("", metric+"_count", labels, growing(2))
			for _, le := range []string{"0.1", "1", "+Inf"} {
				bucket := maps.Clone(labels)
				bucket["le"] = le
				w.add("", metric+"_bucket", bucket, growing(1))
			}
		}
	}
	storage := w.queryable()
	for _, expr := range asNginxAsks() {
		if len(asked(t, storage, expr)) == 0 {
			t.Errorf("a dashboard of ingress-nginx is empty: %s", expr)
		}
	}
	for _, p := range panels(t, objects) {
		for _, q := range p.Targets {
			if len(asked(t, storage, q.Expr)) == 0 {
				t.Errorf("%s is empty: %s", p.Title, q.Expr)
			}
		}
	}
}

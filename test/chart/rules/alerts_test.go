package rules

import (
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"sigs.k8s.io/yaml"
)

const (
	// trouble is when what is wrong begins, and late how long after that and its own
	// patience an alert may come: rates look back for five minutes.
	trouble = 30 * time.Minute
	late    = 6 * time.Minute
)

// TestAlerts: in a cluster that is well nothing alerts. For each alert something is
// wrong by which it, and it alone, fires: no sooner than it has been wrong for as long
// as the alert waits, and with the labels that its text names. That holds by either
// monitor, and wherever the proxy lives.
func TestAlerts(t *testing.T) {
	for name, values := range installations() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := rendered(t, values)
			alerts := alertsOf(t, objects)
			found := targets(t, objects)
			if len(found) != 6 {
				t.Fatalf("%d targets, want two of each component: %v", len(found), found)
			}
			fires(t, alerts, healthy(found), nil)
			for alert := range alerts {
				if !slices.ContainsFunc(troubles(), func(c wrong) bool { return c.alert == alert }) {
					t.Errorf("nothing makes %s fire", alert)
				}
			}
			for _, c := range troubles() {
				w := healthy(found)
				if n := c.is(w); n == 0 {
					t.Errorf("%s: nothing is wrong", c.alert)
				}
				fires(t, alerts, w, &c)
			}
		})
	}
}

// installations are values with alerts.
func installations() map[string]string {
	const on = `metrics: {prometheusRule: {enabled: true}, `
	return map[string]string{
		"as by default":       `{` + on + `serviceMonitor: {enabled: true}}}`,
		"pods are monitored":  `{` + on + `enabled: false, podMonitor: {enabled: true}}}`,
		"proxies beside":      `{` + on + `serviceMonitor: {enabled: true}}, proxy: {namespace: {name: quayside-system}}}`,
		"pods of other names": `{fullnameOverride: edge, nameOverride: lan, ` + on + `podMonitor: {enabled: true}}}`,
	}
}

// alertsOf are the alerts of the chart's PrometheusRule, as Prometheus reads them.
func alertsOf(t *testing.T, objects []object) map[string]rulefmt.Rule {
	t.Helper()
	all := map[string]rulefmt.Rule{}
	for _, o := range objects {
		if o.Kind != "PrometheusRule" {
			continue
		}
		text, err := yaml.JSONToYAML(o.Spec)
		if err != nil {
			t.Fatal(err)
		}
		groups, faults := rulefmt.Parse(text, false, names, reader(), slog.New(slog.DiscardHandler))
		for _, fault := range faults {
			t.Fatal(fault)
		}
		for _, g := range groups.Groups {
			for _, r := range g.Rules {
				all[r.Alert] = r
			}
		}
	}
	if len(all) < 9 {
		t.Fatalf("%d alerts", len(all))
	}
	return all
}

// wrong is something by which an alert fires.
type wrong struct {
	alert string
	// labels are some that it has.
	labels map[string]string
	// is makes it so from trouble on, and returns in how many series.
	is func(*world) int
}

// healthy is a cluster that is well.
func healthy(found []target) *world {
	w := &world{targets: found}
	w.add("", "up", nil, steady(1))
	first := true
	w.add("controller", "quayside_leading", nil, steady(0))
	w.change("quayside_leading", func(*series) bool { defer func() { first = false }(); return first }, func(course) course { return steady(1) })
	w.add("", "quayside_api_staleness_seconds", nil, func(at time.Duration) float64 { return float64(int(at.Seconds()) % 60) })
	for state, n := range map[string]float64{"alive": 2, "missing": 0} {
		w.add("speaker", "quayside_members", map[string]string{"state": state}, steady(n))
	}
	w.add("speaker", "quayside_bgp_session_up", map[string]string{"peer": "tor"}, steady(1))
	w.add("proxy", "quayside_tls_certificate_expiry_seconds", map[string]string{"host": "shop.example.com"},
		func(at time.Duration) float64 { return (60*24*time.Hour - at).Seconds() })
	for code, perSecond := range map[string]float64{"200": 50, "404": 5, "502": 0.5} {
		w.add("proxy", "quayside_http_requests_total", map[string]string{"namespace": "shop", "ingress": "site", "service": "web", "code": code}, growing(perSecond))
	}
	w.add("proxy", "quayside_http_requests_total", map[string]string{"namespace": "", "ingress": "", "service": "", "code": "404"}, growing(3))
	for state, n := range map[string]float64{"assigned": 10, "available": 90} {
		w.add("controller", "quayside_pool_addresses", map[string]string{"pool": "lan", "family": "ipv4", "state": state}, steady(n))
	}
	return w
}

func whichever(*series) bool { return true }

// of is true for the series of a component, and with a label.
func of(component, label, value string) func(*series) bool {
	return func(s *series) bool {
		return (component == "" || s.of.component == component) && (label == "" || s.labels.Get(label) == value)
	}
}

// becomes is what a course is from trouble on.
func becomes(after course) func(course) course {
	return func(before course) course { return from(trouble, before, after) }
}

// troubles are what may be wrong: a row for each alert.
func troubles() []wrong {
	down := func(component string) func(*world) int {
		return func(w *world) int {
			once := false
			return w.change("up", func(s *series) bool {
				hit := s.of.component == component && !once
				once = once || hit
				return hit
			}, becomes(steady(0)))
		}
	}
	missing := func(component string) func(*world) int {
		return func(w *world) int { return w.change("up", of(component, "", ""), becomes(gone())) }
	}
	simply := func(metric string, which func(*series) bool, after course) func(*world) int {
		return func(w *world) int { return w.change(metric, which, becomes(after)) }
	}
	return []wrong{
		{"QuaysideDown", map[string]string{"severity": "critical"}, down("controller")},
		{"QuaysideDown", map[string]string{"severity": "critical"}, down("speaker")},
		{"QuaysideDown", map[string]string{"severity": "critical"}, down("proxy")},
		{"QuaysideMissing", map[string]string{"severity": "critical"}, missing("controller")},
		{"QuaysideMissing", map[string]string{"severity": "critical"}, missing("speaker")},
		{"QuaysideMissing", map[string]string{"severity": "critical"}, missing("proxy")},
		{"QuaysideNoLeader", map[string]string{"severity": "critical"}, simply("quayside_leading", whichever, steady(0))},
		{"QuaysideStale", map[string]string{"severity": "warning"}, func(w *world) int {
			return w.change("quayside_api_staleness_seconds", of("proxy", "", ""), becomes(func(at time.Duration) float64 { return (at - trouble).Seconds() }))
		}},
		{"QuaysideMembersMissing", map[string]string{"severity": "warning"}, simply("quayside_members", of("", "state", "missing"), steady(1))},
		{"QuaysideBGPSessionDown", map[string]string{"peer": "tor"}, simply("quayside_bgp_session_up", whichever, steady(0))},
		{"QuaysideCertificateExpires", map[string]string{"host": "shop.example.com"}, simply("quayside_tls_certificate_expiry_seconds", whichever, steady((13 * 24 * time.Hour).Seconds()))},
		{"QuaysideServerErrors", map[string]string{"namespace": "shop", "ingress": "site"}, func(w *world) int {
			return w.change("quayside_http_requests_total", of("", "code", "502"), func(before course) course {
				return from(trouble, before, func(at time.Duration) float64 { return before(trouble) + 100*(at-trouble).Seconds() })
			})
		}},
		{"QuaysideProblem", map[string]string{"kind": "Service", "reason": "PoolExhausted"}, func(w *world) int {
			w.add("controller", "quayside_problems", map[string]string{"component": "controller", "kind": "Service", "reason": "PoolExhausted"}, from(trouble, gone(), steady(2)))
			return 1
		}},
		{"QuaysidePoolAlmostEmpty", map[string]string{"pool": "lan", "family": "ipv4"}, func(w *world) int {
			return w.change("quayside_pool_addresses", of("", "state", "assigned"), becomes(steady(95))) +
				w.change("quayside_pool_addresses", of("", "state", "available"), becomes(steady(5)))
		}},
	}
}

// fires evaluates all alerts over a world, and reports those that fire and should not,
// or the other way round.
func fires(t *testing.T, alerts map[string]rulefmt.Rule, w *world, c *wrong) {
	t.Helper()
	storage, what := w.queryable(), "nothing"
	if c != nil {
		what = "what " + c.alert + " is about"
	}
	for _, name := range slices.Sorted(maps.Keys(alerts)) {
		rule := alerts[name]
		wanted, fired := c != nil && c.alert == name, false
		for _, s := range asked(t, storage, rule.Expr) {
			since := time.Duration(-1)
			last := time.Duration(-1)
			for _, p := range s.Floats {
				at := time.Duration(p.T) * time.Millisecond
				if last < 0 || at-last > interval {
					since = at
				}
				last = at
				if at-since < time.Duration(rule.For) {
					continue
				}
				switch {
				case !wanted:
					t.Errorf("%s fires after %v with %v where %s is wrong", name, at, s.Metric, what)
				case at < trouble+time.Duration(rule.For):
					t.Errorf("%s fires already after %v: what is wrong began at %v, and it waits %v", name, at, trouble, rule.For)
				case !fired && at > trouble+time.Duration(rule.For)+late:
					t.Errorf("%s fires only after %v: what is wrong began at %v, and it waits %v", name, at, trouble, rule.For)
				case !fired:
					says(t, rule, s.Metric, c.labels)
				}
				fired = fired || wanted
				break
			}
		}
		if wanted && !fired {
			t.Errorf("%s does not fire: %s", name, rule.Expr)
		}
	}
}

// says reports labels that an alert lacks: those that its text names, and others.
func says(t *testing.T, rule rulefmt.Rule, got labels.Labels, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if has := got.Get(name) + rule.Labels[name]; has != value {
			t.Errorf("%s has %s=%q, want %q", rule.Alert, name, has, value)
		}
	}
	for _, text := range rule.Annotations {
		for _, named := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(text, -1) {
			if got.Get(named[1]) == "" {
				t.Errorf("%s says %q, and has no label %s: %v", rule.Alert, strings.TrimSpace(text), named[1], got)
			}
		}
	}
}

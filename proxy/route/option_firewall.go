package route

import (
	"fmt"
	"strings"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/filter"
	"quayside.io/proxy/seclang"
)

// firewalls are the keys of the web application firewall.
func firewalls() []option {
	return []option{
		{key: "enable-modsecurity", scope: ofIngress, unset: "false", risk: riskLow, effect: applied, guard: true, parse: parseFirewall,
			doc: "web application firewall, which only logs (DetectionOnly) until modsecurity-snippet says SecRuleEngine On",
			differ: "needs --modsecurity, without which the route is closed; Coraza judges, after those who decide who may pass; heads alone of upgrades and, where backend-protocol is GRPC or GRPCS, of gRPC, " +
				"and no bodies of responses; no audit log, the proxy's log has the rules' numbers; a mirror gets its copies before bodies are judged"},
		{key: "enable-owasp-core-rules", scope: ofIngress, unset: "false", risk: riskLow, effect: applied, guard: true, parse: parseCoreRules,
			doc:    "core rules of that firewall",
			differ: "those about requests; " + costOfCoreRules},
		{key: "modsecurity-snippet", scope: ofIngress, risk: riskCritical, effect: applied, guard: true, parse: parseFirewallRules,
			doc: "rules of that firewall", differ: snippetDiffers},
		{key: "modsecurity-transaction-id", scope: ofIngress, risk: riskHigh, effect: applied, parse: parseTransactionID,
			doc: "id in that firewall's log", differ: "X-Request-ID by default; simple variables only"},
	}
}

// What the page says of the cost, and of what a snippet may hold.
const (
	costOfCoreRules = "on a core of an AMD EPYC 1 to 3 ms of processor time for a usual request without a body, 16 ms for a form of 1 KiB and 1.6 s for one of 128 KiB, " +
		"the largest by default (SecRequestBodyNoFilesLimit); half of the processors may be busy so at most, and who waits for 5 s gets a 503; " +
		"12 MiB of memory for the first set of rules, 2 MiB for each that differs by a snippet, compiled in 0.2 s and 0.04 s"
	snippetDiffers = "SecRule, SecAction, SecMarker, SecRuleEngine, SecRuleRemoveById and ByTag, SecRuleUpdateTargetById and ByTag, SecRequestBody* " +
		"up to 32 MiB (of which 1 MiB without files), and Include of the two files of ingress-nginx, which are built in; of them only what looks at the " +
		"exchange, with operators, actions and ctl that change no other; patterns are RE2. Audit logs to /dev/stdout and limits of PCRE have no effect. All else closes the route: " +
		"files, Lua, exec, remote rules, SecDefaultAction, other logs. Rules come before the core rules, removals after them; at most 64 different sets of rules are in force"
)

// globalFirewalls are the keys of the ConfigMap.
func globalFirewalls() []globalOption {
	return []globalOption{
		{key: "enable-modsecurity", effect: applied, guard: true, unset: "false", parse: forEach(func(s *settings, value string) error {
			return set(&s.firewall.byDefault, value, parseBool)
		}), doc: "web application firewall, for all Ingresses that do not switch it off", differ: "as the annotation"},
		{key: "enable-owasp-modsecurity-crs", effect: applied, guard: true, unset: "false", parse: forEach(func(s *settings, value string) error {
			return set(&s.firewall.common.Core, value, parseBool)
		}), doc: "core rules of that firewall", differ: "as enable-owasp-core-rules"},
		{key: "modsecurity-snippet", effect: applied, guard: true, parse: parseGlobalRules, doc: "rules of that firewall",
			differ: "as the annotation; what is recommended holds beside it"},
	}
}

// firewallOptions are the keys of the firewall.
type firewallOptions struct {
	allowed     bool // by the operator
	byDefault   bool // enable-modsecurity of the ConfigMap,
	common      seclang.RuleSet
	given, on   bool // and of the Ingress
	core        bool
	own         seclang.RuleSet // modsecurity-snippet
	idle        []string        // directives of it that mean nothing here
	transaction *filter.Template
}

func parseFirewall(s *settings, value string) error {
	s.firewall.given = true
	return set(&s.firewall.on, value, parseBool)
}

func parseCoreRules(s *settings, value string) error {
	return set(&s.firewall.core, value, parseBool)
}

func parseFirewallRules(s *settings, value string) (err error) {
	s.firewall.own, s.firewall.idle, err = seclang.Parse(value)
	return err
}

func parseTransactionID(s *settings, value string) error {
	return set(&s.firewall.transaction, value, parseTemplate)
}

func parseGlobalRules(w *globalOptions, value string) error {
	rules, idle, err := seclang.Parse(value)
	if err != nil {
		return err
	}
	for _, s := range []*settings{&w.own, &w.nginx} {
		rules.Core = rules.Core || s.firewall.common.Core // the key of the core rules comes first
		s.firewall.common = rules
	}
	if len(idle) > 0 {
		w.problem(finding{UnsupportedOption, idleDirectives("option", idle)})
	}
	return nil
}

func idleDirectives(what string, names []string) string {
	return fmt.Sprintf("%s modsecurity-snippet: %s has no effect; what rules match is in the proxy's log", what, strings.Join(names, ", "))
}

// finishFirewall puts the rules of the ConfigMap before those of the Ingress.
func (s *settings) finishFirewall(refs) *finding {
	o := &s.firewall
	s.filters.Firewall = nil
	on := o.byDefault
	if o.given {
		on = o.on
	}
	switch {
	case !on && (o.core || o.own != seclang.RuleSet{}):
		return &finding{InvalidAnnotation, "annotations enable-owasp-core-rules and modsecurity-snippet have no effect without enable-modsecurity"}
	case !on:
		return nil
	case !o.allowed:
		f := s.close("enable-modsecurity", "asks for a firewall, which this proxy does not allow (--modsecurity)")
		return &f
	}
	var rules seclang.RuleSet
	if o.byDefault {
		rules = o.common
	}
	rules, err := rules.With(o.own)
	if err != nil {
		f := s.close("modsecurity-snippet", "is not understood: "+err.Error())
		return &f
	}
	rules.Core = rules.Core || o.core
	s.filters.Firewall = &filter.Firewall{Rules: rules, TransactionID: o.transaction}
	if len(o.idle) > 0 {
		return &finding{UnsupportedAnnotation, idleDirectives("annotation", o.idle)}
	}
	return nil
}

// finishFirewall is the same for Ingresses that say nothing of it.
func (w *globalOptions) finishFirewall() {
	for _, s := range []*settings{&w.own, &w.nginx} {
		if s.firewall.byDefault && !s.firewall.allowed {
			if s == &w.own {
				w.close("enable-modsecurity", "asks for a firewall, which this proxy does not allow (--modsecurity)")
			}
			continue
		}
		s.finishFirewall(nil)
	}
}

// Inspected yields the rules by which t has requests judged, with a route that asks for
// them. It may yield some of them again.
func (t *Table) Inspected(yield func(*Route, seclang.RuleSet) bool) {
	for r := range t.Routes() {
		if r.Closed == "" && r.Filters != nil && r.Filters.Firewall != nil && !yield(r, r.Filters.Firewall.Rules) {
			return
		}
	}
}

// FirewallClosed is the Problem of a route whose firewall is not in force.
func (r *Route) FirewallClosed(why error) snapshot.Problem {
	return snapshot.Problem{Object: r.Owner, Reason: RouteClosed,
		Message: fmt.Sprintf("the firewall that enable-modsecurity asks for is not in force (%v), so every request gets a 503", why)}
}

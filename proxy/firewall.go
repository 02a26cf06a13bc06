package proxy

import (
	"context"
	"time"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/route"
	"quayside.io/proxy/seclang"
)

// rulePatience bounds how long a new table waits for the rules of firewalls to be
// compiled. Routes whose rules take longer answer 503 meanwhile; those of others must
// not wait for what a tenant makes of its own.
const rulePatience = time.Second

// prepareRules has the rules compiled by which t has requests judged, and waits for
// them. The first table waits as long as it takes, since nothing is served yet. It
// returns what forgets all other rules, once t is in force.
func (p *Proxy) prepareRules(ctx context.Context, t *route.Table, first bool) (retain func()) {
	if p.firewall == nil {
		return func() {}
	}
	var list []seclang.RuleSet
	seen := map[seclang.RuleSet]bool{}
	for _, rules := range t.Inspected {
		if !seen[rules] {
			seen[rules] = true
			list = append(list, rules)
		}
	}
	p.firewall.Prepare(list)
	if !first {
		var enough context.CancelFunc
		ctx, enough = context.WithTimeout(ctx, rulePatience)
		defer enough()
	}
	p.firewall.Wait(ctx, list)
	return func() { p.firewall.Retain(list) }
}

// ruleProblems returns those of the Ingresses whose rules are not in force.
func (p *Proxy) ruleProblems() (list []snapshot.Problem) {
	t := p.table.Load()
	if p.firewall == nil || t == nil {
		return nil
	}
	for r, rules := range t.Inspected {
		if err := p.firewall.Fault(rules); err != nil {
			list = append(list, r.FirewallClosed(err))
		}
	}
	return list
}

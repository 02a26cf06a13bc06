package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"quayside.io/cluster"
	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/route"
)

// GrantOptions say what the proxies are given to read.
type GrantOptions struct {
	// To makes it so.
	To Granter
	// ByName grants the Secrets and ConfigMaps that Ingresses name, and no others
	// of their namespace.
	ByName bool
	// Own is Quayside's own namespace, where there are Secrets of another kind: of
	// it only what is named is granted.
	Own string
	// Never says of a Secret that no Ingress can ask for it, since it is ours; nil: of
	// none. What an option of the proxies names, they are given.
	Never func(snapshot.Key) bool
}

// Granter is a *cluster.Grants.
type Granter interface {
	Set(grants []cluster.Grant)
	Run(ctx context.Context) error
	// Refused says of which namespaces nothing can be granted, and why. Changed
	// receives a value when it says another thing.
	Refused() map[string]string
	Changed() <-chan struct{}
}

// reasonNotGranted is the reason of the Problem that the proxies may not read what an
// Ingress names, or the speakers what a BGPPeer does.
const reasonNotGranted = "NotGranted"

// granting is what inspect has made of the Ingresses for the proxies' Granter.
type granting struct {
	options  *GrantOptions
	of       *snapshot.Cluster // of the last step
	table    *route.Table
	refused  map[string]string
	problems []snapshot.Problem
}

// step declares what the proxies with that table may read, and returns what is wrong
// with that. It works out anew only what rests on something that has changed.
func (g *granting) step(c *snapshot.Cluster, rules ingressclass.Rules, t *route.Table) []snapshot.Problem {
	named := !t.SameReferences(g.table) || c.Changed(g.of, snapshot.Ingress, snapshot.IngressClass, snapshot.Namespace)
	if named {
		g.options.To.Set(g.options.compile(c, rules, t))
	}
	if refused := g.options.To.Refused(); named || !maps.Equal(refused, g.refused) {
		g.problems, g.refused = g.options.problems(c, rules, t, refused), refused
	}
	g.of, g.table = c, t
	return g.problems
}

// isOurs reports whether an Ingress that names that Secret has not got it.
func (o *GrantOptions) isOurs(secret snapshot.Key, t *route.Table) bool {
	return o.Never != nil && o.Never(secret) && secret != t.DefaultSecret()
}

// belongsToUs tells who names a Secret that its kind gives to nobody, whoever reads
// what the others name.
func belongsToUs(secret snapshot.Key, kind, readers string) string {
	return fmt.Sprintf("Secret %s belongs to Quayside, or to Helm, and no %s gives it to the %s; name another", secret, kind, readers)
}

// problems tells the Ingresses of ours in namespaces that are refused, of which nothing can
// be granted, and those that name what is never granted.
func (o *GrantOptions) problems(c *snapshot.Cluster, rules ingressclass.Rules, t *route.Table, refused map[string]string) (all []snapshot.Problem) {
	ours := slices.DeleteFunc(t.Secrets(), func(secret snapshot.Key) bool { return !o.isOurs(secret, t) })
	slices.SortFunc(ours, snapshot.Key.Compare)
	for _, secret := range slices.Compact(ours) {
		for _, ref := range t.Naming(secret) {
			all = append(all, snapshot.Problem{Object: ref, Reason: reasonNotGranted, Message: belongsToUs(secret, "Ingress", "proxies")})
		}
	}
	if len(refused) == 0 {
		return all
	}
	classes := ingressclass.Select(&c.Stores, rules)
	for key, i := range c.Ingresses.All() {
		why, is := refused[key.Namespace]
		if !is {
			continue
		}
		if _, ours := classes.Of(i); ours {
			all = append(all, snapshot.Problem{Object: snapshot.RefOf(i), Reason: reasonNotGranted, Message: fmt.Sprintf(
				"the proxies cannot be given the Secrets and ConfigMaps of namespace %s, so they cannot read what this Ingress names there: %s",
				key.Namespace, why)})
		}
	}
	return all
}

// compile returns what the proxies with that table may read: of each namespace with
// an Ingress that they serve, and what their own options name.
func (o *GrantOptions) compile(c *snapshot.Cluster, rules ingressclass.Rules, t *route.Table) []cluster.Grant {
	grants := map[string]*cluster.Grant{}
	outside := func(namespace string) bool { return rules.Namespace != "" && namespace != rules.Namespace }
	of := func(namespace string) *cluster.Grant {
		if grants[namespace] == nil {
			grants[namespace] = &cluster.Grant{Namespace: namespace}
		}
		return grants[namespace]
	}
	if !o.ByName {
		classes := ingressclass.Select(&c.Stores, rules)
		for key, i := range c.Ingresses.All() {
			if _, ours := classes.Of(i); ours && key.Namespace != o.Own {
				of(key.Namespace).All = true
			}
		}
	}
	for _, key := range t.Secrets() {
		if g := of(key.Namespace); !g.All && !o.isOurs(key, t) && !outside(key.Namespace) {
			g.Secrets = append(g.Secrets, key.Name)
		}
	}
	for _, key := range t.ConfigMaps() {
		if g := of(key.Namespace); !g.All && !outside(key.Namespace) {
			g.ConfigMaps = append(g.ConfigMaps, key.Name)
		}
	}
	var list []cluster.Grant
	for _, namespace := range slices.Sorted(maps.Keys(grants)) {
		g := grants[namespace]
		for _, names := range []*[]string{&g.Secrets, &g.ConfigMaps} {
			slices.Sort(*names)
			*names = slices.Compact(*names)
		}
		if g.All || len(g.Secrets)+len(g.ConfigMaps) > 0 {
			list = append(list, *g)
		}
	}
	return list
}

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
	// Never are the Secrets that no Ingress can ask for.
	Never []snapshot.Key
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
// Ingress names.
const reasonNotGranted = "NotGranted"

// problems tells the Ingresses of ours in namespaces of which nothing can be granted.
func (o *GrantOptions) problems(c *snapshot.Cluster, rules ingressclass.Rules) (all []snapshot.Problem) {
	refused := o.To.Refused()
	if len(refused) == 0 {
		return nil
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
		if g := of(key.Namespace); !g.All && !slices.Contains(o.Never, key) && !outside(key.Namespace) {
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

package announce

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"quayside.io/controller/snapshot"
)

// judge says how many of e's Services node i may serve, and if not all, why.
func (k *compiler) judge(e *address, i int) (served int, reason string) {
	n := &k.nodes[i]
	switch {
	case !n.alive:
		return 0, "its speaker is not alive"
	case n.barred != "":
		return 0, n.barred
	}
	for _, u := range e.users {
		if why := k.judgeUser(e, u, i); why == "" {
			served++
		} else if reason == "" {
			reason = why
		}
	}
	return served, reason
}

func (k *compiler) judgeUser(e *address, u user, i int) (reason string) {
	n := &k.nodes[i]
	reason = "no advertisement selects it"
	for _, a := range u.adverts {
		if !k.adverts[a].nodes[i] {
			continue
		}
		if reason = k.judgeLinks(e, &k.adverts[a], n); reason == "" {
			break
		}
	}
	if reason != "" || u.local == nil {
		return reason
	}
	if _, ok := u.local[n.name]; !ok {
		return fmt.Sprintf("no ready endpoint of %s, whose externalTrafficPolicy is Local", snapshot.KeyOf(u.svc))
	}
	return ""
}

// judgeLinks says why no interface of n can carry e under a.
func (k *compiler) judgeLinks(e *address, a *advert, n *node) string {
	if !n.known {
		return "" // nothing is held against a node that has not told yet
	}
	var named, down []string
	for i := range n.ifaces {
		link := &n.ifaces[i]
		if _, ok := a.interfaces[link.Name]; !ok && a.interfaces != nil {
			continue
		}
		named = append(named, link.Name)
		if carries(link, e.addr, a.interfaces != nil) {
			if link.Up {
				return ""
			}
			down = append(down, link.Name)
		}
	}
	switch {
	case len(down) > 0:
		return "interface " + strings.Join(down, ", ") + " is down"
	case a.interfaces != nil && len(named) == 0:
		return "it has no interface " + strings.Join(slices.Sorted(maps.Keys(a.interfaces)), " or ")
	case a.interfaces != nil:
		return fmt.Sprintf("no address or on-link route in %s on interface %s", e.where.text, strings.Join(named, ", "))
	}
	return "no interface in " + e.where.text
}

// carries reports whether the subnet of a lies on link. A link without any
// address of that family carries whatever the operator names it for.
func carries(link *Interface, a netip.Addr, named bool) bool {
	bare := named
	for _, p := range link.Prefixes {
		if p.Contains(a) {
			return true
		}
		if p.Addr().Is4() == a.Is4() && !p.Addr().IsLinkLocalUnicast() {
			bare = false
		}
	}
	return bare || slices.ContainsFunc(link.Routes, func(p netip.Prefix) bool { return p.Contains(a) })
}

// links are the interfaces on which node i answers for e. While it hands the
// address over, its own selection does not matter any more.
func (k *compiler) links(e *address, i int, handOver bool) []string {
	n := &k.nodes[i]
	var out []string
	for j := range n.ifaces {
		link := &n.ifaces[j]
		if !link.Up {
			continue
		}
		if slices.ContainsFunc(e.users, func(u user) bool {
			return slices.ContainsFunc(u.adverts, func(a int) bool {
				v := &k.adverts[a]
				if _, ok := v.interfaces[link.Name]; !ok && v.interfaces != nil || !v.nodes[i] && !handOver {
					return false
				}
				return carries(link, e.addr, v.interfaces != nil)
			})
		}) {
			out = append(out, link.Name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// candidates are the nodes that a new claim on e may go to.
func (k *compiler) candidates(e *address) []int { return k.fittest(k.best(e)) }

// best are the nodes that serve the most of e's Services.
func (k *compiler) best(e *address) []int {
	var out []int
	most := 1
	for i := range k.nodes {
		switch served, _ := k.judge(e, i); {
		case served > most:
			most, out = served, []int{i}
		case served == most:
			out = append(out, i)
		}
	}
	return out
}

// fittest narrows in to the nodes that do not stop, are ready, have their rules
// and stay, each where any are left. (An API server that is gone makes every
// node NotReady, and a power cut leaves every node without rules.) A speaker
// that stops takes its addresses down with it, whoever else is there; one on a
// node that is drained serves better than one that may not be able to.
func (k *compiler) fittest(in []int) []int {
	in = k.prefer(in, func(n *node) bool { return !n.stopping })
	in = k.prefer(in, func(n *node) bool { return n.ready })
	in = k.prefer(in, func(n *node) bool { return !n.behind })
	return k.prefer(in, func(n *node) bool { return !n.drained })
}

// prefer narrows in to the nodes that satisfy ok, if any do.
func (k *compiler) prefer(in []int, ok func(*node) bool) []int {
	if narrowed := slices.DeleteFunc(slices.Clone(in), func(i int) bool { return !ok(&k.nodes[i]) }); len(narrowed) > 0 {
		return narrowed
	}
	return in
}

// maxReasons bounds a message; a person reads three reasons, not a thousand.
const maxReasons = 8

// tellNobody explains to each Service on e why no node announces it.
func (k *compiler) tellNobody(e *address) {
	var reasons []string
	for i := range k.nodes {
		if len(reasons) == maxReasons {
			reasons = append(reasons, fmt.Sprintf("and %d more nodes", len(k.nodes)-maxReasons))
			break
		}
		_, why := k.judge(e, i)
		reasons = append(reasons, k.nodes[i].name+": "+why)
	}
	if len(reasons) == 0 {
		reasons = []string{"the cluster has no Node"}
	}
	for _, u := range e.users {
		k.problem(snapshot.RefOf(u.svc), "NoEligibleNode", fmt.Sprintf("no node can announce %s: %s", e.addr, strings.Join(reasons, "; ")))
	}
}

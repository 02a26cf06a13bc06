package announce

import (
	"net/netip"
	"slices"
)

// serves counts those of e's Services that node i may serve.
func (k *compiler) serves(e *address, i int) (served int) {
	if n := &k.nodes[i]; !n.alive || n.barred != "" {
		return 0
	}
	for j := range e.users {
		if u := &e.users[j]; u.isAt(i) && k.reaches(e, u, i) {
			served++
		}
	}
	return served
}

// reaches reports whether an advertisement of u lets node i announce e.
func (k *compiler) reaches(e *address, u *user, i int) bool {
	return slices.ContainsFunc(u.adverts, func(a int) bool {
		v := &k.adverts[a]
		return v.nodes[i] && k.nodes[i].carries(e.addr, v.interfaces)
	})
}

// carries reports whether a link of n that is up carries a, among those of the given names
// if there are any. A node whose interfaces are not known yet carries every address.
func (n *node) carries(a netip.Addr, names map[string]struct{}) bool {
	for i := range n.ifaces {
		link := &n.ifaces[i]
		if _, named := names[link.Name]; link.Up && (named || names == nil) && carries(link, a, names != nil) {
			return true
		}
	}
	return !n.known
}

// hasLink reports whether a link of n is up, among those of the given names if there are
// any. Of a node whose interfaces are not known yet that is assumed.
func (n *node) hasLink(names map[string]struct{}) bool {
	for i := range n.ifaces {
		link := &n.ifaces[i]
		if _, named := names[link.Name]; link.Up && (named || names == nil) {
			return true
		}
	}
	return !n.known
}

// carries reports whether a lies in a subnet of link. A link without an address of that
// family carries every address for which an advertisement names it.
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

// links are the interfaces on which node i answers for e. While it hands the address over,
// it need not be selected by an advertisement any more.
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

// isDeaf reports whether all links of node i that carry e are deaf.
func (k *compiler) isDeaf(e *address, i int) bool {
	if !k.nodes[i].deaf {
		return false
	}
	deaf := map[string]bool{}
	for _, link := range k.nodes[i].ifaces {
		deaf[link.Name] = link.Deaf
	}
	links := k.links(e, i, true)
	return len(links) > 0 && !slices.ContainsFunc(links, func(name string) bool { return !deaf[name] })
}

// hearing narrows in to the nodes that are not deaf for e. There may be none.
func (k *compiler) hearing(e *address, in []int) []int {
	return slices.DeleteFunc(in, func(i int) bool { return k.isDeaf(e, i) })
}

// candidates are the nodes that may claim e anew: those that are not deaf, if any.
func (k *compiler) candidates(e *address) []int {
	best := k.best(e)
	if k.someDeaf {
		if some := k.hearing(e, slices.Clone(best)); len(some) > 0 {
			best = some
		}
	}
	return k.fittest(best)
}

// eligible returns a superset of the nodes that may serve e.
func (k *compiler) eligible(e *address) []int {
	if only := &e.users[0]; len(e.users) == 1 && only.local != nil {
		return only.local
	}
	return k.usable
}

// best are the nodes that serve the most of e's Services. The slice is valid until the
// next call.
func (k *compiler) best(e *address) []int {
	out, most := k.scratch[:0], 1
	for _, i := range k.eligible(e) {
		switch served := k.serves(e, i); {
		case served > most:
			most, out = served, append(out[:0], i)
		case served == most:
			out = append(out, i)
		}
	}
	k.scratch = out
	return out
}

// fittest narrows in to the nodes that are the least unfit.
func (k *compiler) fittest(in []int) []int {
	least := ^unfitness(0)
	for _, i := range in {
		least = min(least, k.nodes[i].unfit)
	}
	return slices.DeleteFunc(in, func(i int) bool { return k.nodes[i].unfit > least })
}

package announce

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"quayside.io/cluster/snapshot"
)

// maxReasons is how many nodes a message names.
const maxReasons = 8

// whyNoOwner reports to each Service on e why no node can announce it.
func (k *compiler) whyNoOwner(e *address) (problems []snapshot.Problem) {
	var reasons []string
	for i := range k.nodes {
		if len(reasons) == maxReasons {
			reasons = append(reasons, fmt.Sprintf("and %d more nodes", len(k.nodes)-maxReasons))
			break
		}
		reasons = append(reasons, k.nodes[i].name+": "+k.whyNot(e, i))
	}
	if len(reasons) == 0 {
		reasons = []string{"the cluster has no Node"}
	}
	for _, u := range e.users {
		problems = append(problems, snapshot.Problem{
			Object: snapshot.RefOf(u.svc), Reason: "NoEligibleNode",
			Message: fmt.Sprintf("no node can announce %s: %s", e.addr, strings.Join(reasons, "; ")),
		})
	}
	return problems
}

// whyNot is why node i may not serve a Service of e; "": it may serve all. It applies the
// rules of serves, which is on the fast path and gives no reasons.
func (k *compiler) whyNot(e *address, i int) string {
	switch n := &k.nodes[i]; {
	case !n.alive:
		return "its speaker is not alive"
	case n.barred != "":
		return n.barred
	}
	for j := range e.users {
		u := &e.users[j]
		switch {
		case !k.reaches(e, u, i):
			return k.whyNoLink(e, u, i)
		case !u.isAt(i):
			return fmt.Sprintf("no ready endpoint of %s, whose externalTrafficPolicy is Local", snapshot.KeyOf(u.svc))
		}
	}
	return ""
}

// whyNoLink is why node i does not reach e, according to the last of the advertisements of
// u that select the node.
func (k *compiler) whyNoLink(e *address, u *user, i int) string {
	for _, a := range slices.Backward(u.adverts) {
		if v := &k.adverts[a]; v.nodes[i] {
			return k.nodes[i].whyNoLink(e.addr, k.homes.Entry(e.pool, e.addr), v.interfaces)
		}
	}
	return "no advertisement selects it"
}

// whyNoLink is why no link of n, among those of the given names if there are any, carries
// a, which lies in entry of its pool.
func (n *node) whyNoLink(a netip.Addr, entry string, names map[string]struct{}) string {
	var named, down []string
	for i := range n.ifaces {
		link := &n.ifaces[i]
		if _, ok := names[link.Name]; !ok && names != nil {
			continue
		}
		named = append(named, link.Name)
		if carries(link, a, names != nil) {
			down = append(down, link.Name)
		}
	}
	switch {
	case len(down) > 0:
		return "interface " + strings.Join(down, ", ") + " is down"
	case names != nil && len(named) == 0:
		return "it has no interface " + strings.Join(slices.Sorted(maps.Keys(names)), " or ")
	case names != nil:
		return fmt.Sprintf("no address or on-link route in %s on interface %s", entry, strings.Join(named, ", "))
	}
	return "no interface in " + entry
}

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
	var reasons, helps []string
	for i := range k.nodes {
		if len(reasons) == maxReasons {
			reasons = append(reasons, fmt.Sprintf("and %d more nodes", len(k.nodes)-maxReasons))
			break
		}
		why, help := k.whyNot(e, i)
		reasons = append(reasons, k.nodes[i].name+": "+why)
		if help != "" && !slices.Contains(helps, help) {
			helps = append(helps, help)
		}
	}
	if len(reasons) == 0 {
		reasons, helps = []string{"the cluster has no Node"}, []string{"a Node"}
	}
	for _, u := range e.users {
		problems = append(problems, snapshot.Problem{
			Object: snapshot.RefOf(u.svc), Reason: "NoEligibleNode",
			Message: fmt.Sprintf("no node can announce %s: %s; what helps: %s", e.addr, strings.Join(reasons, "; "), strings.Join(helps, ", or ")),
		})
	}
	return problems
}

// whyNot is why node i may not serve a Service of e, and what would help; "": it may serve
// all. It applies the rules of serves, which is on the fast path and gives no reasons.
func (k *compiler) whyNot(e *address, i int) (why, help string) {
	switch n := &k.nodes[i]; {
	case !n.alive:
		return "its speaker is not alive", "a speaker that runs there"
	case n.excluded && !k.opts.IgnoreExcludeLabel:
		return n.barred, "a node without that label"
	case n.barred != "":
		return n.barred, "a node whose network is there"
	}
	for j := range e.users {
		u := &e.users[j]
		switch {
		case !k.reaches(e, u, i):
			return k.whyNoLink(e, u, i)
		case !u.isAt(i):
			return fmt.Sprintf("no ready endpoint of %s, whose externalTrafficPolicy is Local", snapshot.KeyOf(u.svc)),
				"a ready pod on a node that may announce it, or externalTrafficPolicy: Cluster"
		}
	}
	return "", ""
}

// whyNoLink is why node i does not reach e, according to the last of the advertisements of
// u that select the node, and what would help.
func (k *compiler) whyNoLink(e *address, u *user, i int) (why, help string) {
	for _, a := range slices.Backward(u.adverts) {
		if v := &k.adverts[a]; v.nodes[i] {
			return k.nodes[i].whyNoLink(e.addr, k.homes.Entry(e.pool, e.addr), v.interfaces),
				"a pool within the network of an interface that is up, other interfaces in its L2Advertisement, or a BGPAdvertisement"
		}
	}
	return "no advertisement selects it", "an L2Advertisement of its pool whose nodeSelectors match a node"
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

package explain

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
)

// routers says which routers learn an address. That a node may tell a peer is
// worked out from the objects, and whether it can stands in its SpeakerStatus.
type routers struct {
	cluster *snapshot.Cluster
	reach   *announce.Reach
}

func routersOf(c *snapshot.Cluster, now time.Time, opts announce.Options) *routers {
	return &routers{c, announce.ReachOf(c, announce.ViewOf(c), now, opts)}
}

// established is the state of a session that carries routes (RFC 4271 8.2.2).
const established = "Established"

// told are the peers that the speaker of status tells ip, and those that it
// cannot tell, each with the reason.
func (r *routers) told(status *v1alpha1.SpeakerStatus, ip netip.Addr) (up []string, down map[string]string) {
	if isOrphan(r.cluster, status) {
		return nil, nil
	}
	down = map[string]string{}
	for _, peer := range r.reach.Of(ip)[status.Name] {
		down[peer] = "its speaker does not mention one"
	}
	for _, s := range status.Status.BGPSessions {
		switch _, should := down[s.Peer]; {
		case !should:
		case s.State == established:
			up = append(up, s.Peer+reservations(&s))
			delete(down, s.Peer)
		default:
			down[s.Peer] = cmp.Or(s.LastError, "its state is "+s.State)
		}
	}
	return up, down
}

// returns says where nodes send what comes for a port that no Service at ip has: by their own
// routes, which for an address that routers send here mostly lead back to one of them.
func (t *tracer) returns(ip netip.Addr) string {
	if routed, _ := t.told(ip); len(routed) == 0 {
		return ""
	}
	return "; nodes send such packets on by their own routes, mostly back to the router, unless a rule drops them (docs/bgp.md)"
}

// reservations say what is wrong with a session that is up.
func reservations(s *v1alpha1.BGPSession) string {
	switch {
	case s.Withheld != "":
		return " (which cannot be told some routes, " + s.Withheld + ")"
	case s.BFDState != "" && s.BFDState != bfdUp:
		return " (" + unguarded(s) + ")"
	}
	return ""
}

// speaking is a node with sessions that carry routes.
type speaking struct {
	node, says string
	up         map[string]bool // by peer
}

// addRouted adds to "service address" the nodes that announce it over BGP. There may be
// very many of both, so what told says of one is worked out here for all.
func addRouted(inputs Inputs, by map[string][]string) {
	c := inputs.Cluster
	var nodes []speaking
	for _, s := range c.SpeakerStatuses.Sorted() {
		up := map[string]bool{}
		for _, session := range s.Status.BGPSessions {
			if session.State == established {
				up[session.Peer] = true
			}
		}
		if len(up) > 0 && !isOrphan(c, s) {
			nodes = append(nodes, speaking{s.Name, s.Name + " (bgp)", up})
		}
	}
	if len(nodes) == 0 {
		return
	}
	r := routersOf(c, inputs.Now, inputs.Announce)
	for _, svc := range c.Services.All() {
		for _, ip := range loadbalancer.Addresses(svc) {
			peers := r.reach.Of(ip)
			if len(peers) == 0 {
				continue
			}
			k := snapshot.KeyOf(svc).String() + " " + ip.String()
			list := slices.Grow(by[k], len(peers))
			for _, n := range nodes {
				if slices.ContainsFunc(peers[n.node], func(peer string) bool { return n.up[peer] }) {
					list = append(list, n.says)
				}
			}
			by[k] = list
		}
	}
}

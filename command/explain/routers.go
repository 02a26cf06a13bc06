package explain

import (
	"cmp"
	"net/netip"
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

// addRouted adds to "service address" the nodes that announce it over BGP.
func addRouted(scene Scene, by map[string][]string) {
	c := scene.Cluster
	var speaking []*v1alpha1.SpeakerStatus
	for _, s := range c.SpeakerStatuses.Sorted() {
		if len(s.Status.BGPSessions) > 0 {
			speaking = append(speaking, s)
		}
	}
	if len(speaking) == 0 {
		return
	}
	r := routersOf(c, scene.Now, scene.Announce)
	for _, svc := range c.Services.Sorted() {
		for _, ip := range loadbalancer.Addresses(svc) {
			k := snapshot.KeyOf(svc).String() + " " + ip.String()
			for _, s := range speaking {
				if up, _ := r.told(s, ip); len(up) > 0 {
					by[k] = append(by[k], s.Name+" (bgp)")
				}
			}
		}
	}
}

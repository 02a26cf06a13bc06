package announce

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
)

// maxAnnouncing is what a SpeakerStatus may list; it counts all.
const maxAnnouncing = 1000

// readClaims adds what the SpeakerStatuses remember to what gossip says. After
// a total restart they are all there is.
func (k *compiler) readClaims() {
	k.claims = make(map[netip.Addr]Claim, len(k.view.Claims))
	for a, c := range k.view.Claims {
		k.claims[a] = c
	}
	k.published = map[netip.Addr]pledge{}
	most := MaxCount(k.now)
	for key, s := range k.c.SpeakerStatuses.All() {
		for _, said := range s.Status.Announcing {
			a, err := netip.ParseAddr(said.Address)
			if err != nil || said.Protocol != "l2" || said.Epoch < 1 || said.Epoch > most {
				continue
			}
			c := Claim{said.Epoch, key.Name}
			if old, ok := k.claims[a]; !ok || c.Beats(old) {
				k.claims[a] = c
			}
			if c.Beats(k.published[a].Claim) {
				k.published[a] = pledge{c, said.Preference}
			}
		}
	}
}

// decide gives every address its owner: first those that keep theirs, then the
// free ones in a fixed order.
func (k *compiler) decide() {
	var judged []*address
	for _, e := range k.addresses {
		if !e.judged {
			k.judge(e)
			judged = append(judged, e)
		}
	}
	k.inherit(judged)
	k.plan.L2.Watch = k.watch(judged)
	for _, e := range k.addresses {
		if e.keeper < 0 {
			k.give(e)
		}
	}
	me, known := k.nodeIndex[k.me]
	for _, h := range k.holdings {
		if known {
			k.noteSince(h, me)
		}
	}
	k.nameOwners(me)
	for _, e := range k.addresses {
		if known && e.owner >= 0 && (e.owner == me || e.claim.Node == k.me) {
			k.act(e, me)
		}
	}
}

// judge finds whether somebody keeps e, which nothing but e decides.
func (k *compiler) judge(e *address) {
	e.judged, e.keeper, e.claim = true, -1, k.claims[e.addr]
	if i, ok := k.keeper(e); ok && !k.outpreferred(e, i) {
		e.keeper = i
	}
	e.owner = e.keeper
}

// give chooses the owner of e, which is free, if anybody can be.
func (k *compiler) give(e *address) {
	if e.nobody == nil {
		if candidates := k.candidates(e); len(candidates) > 0 {
			e.owner = k.place(e, candidates)
			k.burden.add(e, e.owner)
			return
		}
		e.nobody = k.whyNobody(e)
	}
	k.plan.Problems = append(k.plan.Problems, e.nobody...)
}

// nameOwners says who owns what, beginning with what the plan before said.
func (k *compiler) nameOwners(me int) {
	if k.plan.L2.Owners == nil {
		k.plan.L2.Owners = make(map[netip.Addr]string, len(k.addresses))
	}
	for i, e := range k.addresses {
		if k.before != nil && k.before[i] == e && e.owner != me { // of its own the LAN may have known better
			continue
		}
		name := ""
		if e.owner >= 0 {
			name = k.nodes[e.owner].name
		}
		if was, known := k.plan.L2.Owners[e.addr]; !known || was != name {
			k.plan.L2.Owners[e.addr] = name
		}
	}
}

// keeper returns the node whose claim on e stands.
func (k *compiler) keeper(e *address) (int, bool) {
	i, exists := k.nodeIndex[e.claim.Node]
	if !exists {
		return 0, false
	}
	served := k.serves(e, i)
	if served == 0 {
		return 0, false
	}
	deaf := k.isDeaf(e, i)
	if served == len(e.users) && !k.nodes[i].leaving() && !deaf {
		return i, true
	}
	// It stays only if nobody serves more or, where it leaves, is fitter, or, where
	// nobody hears it, is heard. NotReady and without rules are no reasons to move.
	best := k.best(e)
	if deaf && len(k.hearing(e, slices.Clone(best))) > 0 {
		return i, false
	}
	if k.nodes[i].leaving() {
		best = k.fittest(best)
	}
	return i, slices.Contains(best, i)
}

// act turns the owner of e into what this node does about it.
func (k *compiler) act(e *address, me int) {
	claim := e.claim
	mine := claim.Node == k.me
	_, cut := k.view.Cut[e.addr]
	switch {
	case e.owner == me && mine && !cut:
		k.plan.L2.Answers[e.addr] = k.answer(e, me, claim.Epoch, "")
		k.tellRefusal(e, "but a stranger (%s) answers for it too: find that host, its clients reach one or the other")
	case e.owner == me:
		take := Take{Address: e.addr, Answer: k.answer(e, me, claim.Epoch+1, ""), From: claim.Node, Cause: k.cause(e, claim)}
		if mine {
			// Should others own it and the question to them be lost, theirs wins.
			take.Epoch, take.Cause = claim.Epoch, Returned
		}
		// An owner that lets go answers until its successor does: that is no
		// refusal, whatever was heard before it let go.
		letsGo := take.Cause == Leaving || take.Cause == Ineligible || take.Cause == Preferred
		if at := k.settled(e, claim); letsGo && !at.IsZero() {
			k.wakeAt(at)
			return
		}
		if take.Cause != Leaving && letsGo && k.doubts(e, claim) {
			take.Doubtful, letsGo = true, false
		}
		if r, refused := k.view.Refused[e.addr]; refused && !letsGo {
			if r.Node != "" {
				k.plan.L2.Owners[e.addr] = r.Node // the LAN knows better than gossip
			}
			k.plan.L2.Barred = append(k.plan.L2.Barred, take)
			k.tellRefusal(e, "and a stranger (%s) answers for it: it is not announced while that host is there; take the address out of the pool or from the host")
		} else {
			k.plan.L2.Take = append(k.plan.L2.Take, take)
		}
	case mine && cut: // it is no longer answered for, and others will
	case mine && e.outpreferred: // for as long as it takes: this node may serve it
		k.plan.L2.Answers[e.addr] = k.answer(e, me, claim.Epoch, "")
	case mine && k.nodes[me].alive:
		k.handOver(e, me, claim.Epoch)
	}
}

// doubts reports whether this node should ask before it finds that the owner of
// e, who lives, may not serve it. If the address was taken from this node, by
// that owner or by one before, then others see the cluster differently. This
// node trusts its watch if that shows at least the claim; but each kind has a
// watch of its own, and where two have taken the address from each other again
// and again, one of them lags whatever it shows. Leaving needs no such proof:
// the owner itself says so.
func (k *compiler) doubts(e *address, claim Claim) bool {
	lost := k.view.Lost[e.addr]
	return lost.isQuarrel(k.now) || lost.Times > 0 && !k.isPublished(e.addr, claim)
}

// isPublished reports whether the API server shows claim here, or could not,
// since its node has more than a SpeakerStatus holds.
func (k *compiler) isPublished(a netip.Addr, claim Claim) bool {
	s, ok := k.c.SpeakerStatuses.Get(nodeKey(claim.Node))
	return k.published[a].Claim == claim || ok && s.Status.AnnouncingCount > int64(len(s.Status.Announcing))
}

// handOver keeps an address that should move answered until it has moved. A
// node that only leaves can serve it as well as ever, and so has no bound.
func (k *compiler) handOver(e *address, me int, epoch int64) {
	bounded := k.serves(e, me) < len(e.users)
	since, handing := k.view.HandingOver[e.addr]
	if bounded && handing && k.now.Sub(since) >= HandOverGrace {
		return
	}
	answer := k.answer(e, me, epoch, k.nodes[e.owner].name)
	if len(answer.Interfaces) == 0 && k.nodes[me].known {
		return // its links are gone: nothing is left to keep
	}
	k.plan.L2.Answers[e.addr] = answer
	if !bounded {
		return
	}
	if !handing {
		since = k.now
	}
	k.wakeAt(since.Add(HandOverGrace))
}

func (k *compiler) answer(e *address, me int, epoch int64, handOver string) Answer {
	a := Answer{Epoch: epoch, HandOver: handOver, Interfaces: k.links(e, me, handOver != ""), Preference: k.preference(e, me)}
	for _, u := range e.users {
		a.Services = append(a.Services, snapshot.KeyOf(u.svc))
	}
	return a
}

func (k *compiler) cause(e *address, claim Claim) Cause {
	if claim.Node == "" {
		return First
	}
	i, exists := k.nodeIndex[claim.Node]
	switch {
	case e.outpreferred:
		return Preferred
	case !exists || !k.nodes[i].alive:
		return Died
	case k.nodes[i].leaving():
		return Leaving
	case k.serves(e, i) == len(e.users) && k.isDeaf(e, i):
		return Deaf
	}
	return Ineligible
}

func (k *compiler) tellRefusal(e *address, format string) {
	r, refused := k.view.Refused[e.addr]
	if !refused || r.Node != "" {
		return
	}
	for _, u := range e.users {
		k.problem(snapshot.RefOf(u.svc), addressInUse, fmt.Sprintf("%s belongs to this Service "+format, e.addr, r.MAC))
	}
}

// addressInUse is the reason of the problems that only who asked the LAN knows.
const addressInUse = "AddressInUse"

// Heard are the problems that only this node knows: of strangers on the LAN, which
// it heard, and of its kube-proxy, which it asked.
func (p *Plan) Heard() (heard []snapshot.Problem) {
	for _, problem := range p.Problems {
		if problem.Reason == addressInUse || problem.Reason == unknownToKubeProxy {
			heard = append(heard, problem)
		}
	}
	return heard
}

// status is what this node's SpeakerStatus should say.
func (k *compiler) status() v1alpha1.SpeakerStatusStatus {
	var s v1alpha1.SpeakerStatusStatus
	for a, answer := range k.plan.L2.Answers {
		for _, svc := range answer.Services {
			s.Announcing = append(s.Announcing, v1alpha1.Announcing{
				Service: svc.String(), Address: a.String(), Protocol: "l2", Epoch: answer.Epoch, Interfaces: answer.Interfaces,
				Preference: answer.Preference,
			})
		}
	}
	slices.SortFunc(s.Announcing, func(a, b v1alpha1.Announcing) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Address, b.Address))
	})
	s.AnnouncingCount = int64(len(s.Announcing))
	s.Announcing = s.Announcing[:min(len(s.Announcing), maxAnnouncing)]
	facts := k.view.Facts[k.me]
	s.Leaving = facts.Leaving
	if me, known := k.nodeIndex[k.me]; known {
		s.Leaving = k.nodes[me].leaving()
	}
	s.Interfaces = statusInterfaces(facts.Interfaces)
	return s
}

func statusInterfaces(in []Interface) []v1alpha1.SpeakerInterface {
	var out []v1alpha1.SpeakerInterface
	for _, i := range in {
		v := v1alpha1.SpeakerInterface{Name: i.Name, MAC: i.MAC, Up: i.Up}
		for _, p := range slices.Concat(i.Prefixes, i.Routes) {
			v.Prefixes = append(v.Prefixes, p.String())
		}
		for _, g := range i.Gateways {
			v.Gateways = append(v.Gateways, g.String())
		}
		out = append(out, v)
	}
	return out
}

// ViewOf is the view of somebody who hears no gossip, such as the controller's
// leader: alive is who has a SpeakerStatus, and does not miss itself in it, or,
// before any has, every node.
func ViewOf(c *snapshot.Cluster) View {
	v := View{Alive: map[string]struct{}{}}
	for k, s := range c.SpeakerStatuses.All() {
		missesItself := func(text string) bool { return strings.HasPrefix(text, k.Name+": ") }
		if !slices.ContainsFunc(s.Status.Members.NotAlive, missesItself) {
			v.Alive[k.Name] = struct{}{}
		}
	}
	if c.SpeakerStatuses.Len() == 0 {
		for k := range c.Nodes.All() {
			v.Alive[k.Name] = struct{}{}
		}
	}
	return v
}

// Wake is the duration from now until the plan changes by itself; zero: never.
func (p *Plan) Wake(now time.Time) time.Duration {
	if p.NextWake.IsZero() {
		return 0
	}
	return max(time.Millisecond, p.NextWake.Sub(now))
}

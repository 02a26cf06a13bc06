package announce

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
)

// maxAnnouncing is how many entries status.announcing may list; AnnouncingCount counts all.
const maxAnnouncing = 1000

// decide gives every address its owner: first those that keep theirs, then the free ones
// in order of address.
func (k *compiler) decide() {
	for _, i := range k.changed {
		k.judge(k.addresses[i])
	}
	k.countKept()
	wasFree := k.free
	k.free = listed(k.free, k.changed, func(i int) bool { return k.addresses[i].keeper < 0 })
	k.plan.L2.Watch = k.watch(k.markSuccessions(k.changed))
	for _, i := range k.free {
		k.give(k.addresses[i])
	}
	me, known := k.nodeIndex[k.me]
	if !known {
		return
	}
	k.here = listed(k.here, k.moved, func(i int) bool { return k.holdings[i].users[0].touches(me) })
	for _, i := range k.here {
		k.noteSince(k.holdings[i], me)
	}
	for _, anew := range [][]int{k.changed, wasFree, k.free} {
		k.mine = listed(k.mine, anew, func(i int) bool {
			e := k.addresses[i]
			return e.owner >= 0 && (e.owner == me || e.claim.Node == k.me)
		})
	}
	for _, i := range k.mine {
		k.act(k.addresses[i], me)
	}
}

// judge decides whether the holder of e keeps it, which does not depend on other addresses.
func (k *compiler) judge(e *address) {
	e.judged, e.keeper, e.claim = true, -1, k.claims[e.addr]
	if i, ok := k.keeper(e); ok && !k.outpreferred(e, i) {
		e.keeper = i
	}
	e.owner = e.keeper
}

// give chooses the owner of e, which is free, if any node can own it.
func (k *compiler) give(e *address) {
	if e.noOwner == nil {
		if candidates := k.candidates(e); len(candidates) > 0 {
			e.owner = k.place(e, candidates)
			k.add(e, e.owner)
			k.stepIn(e, candidates)
			return
		}
		e.noOwner = k.whyNoOwner(e)
	}
	k.plan.Problems = append(k.plan.Problems, e.noOwner...)
}

// keeper returns the holder of e, and whether it keeps the address.
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
	// It keeps the address only if no other node serves more Services of it; if it is
	// leaving, only if none is fitter; if it is deaf, only if none is not. NotReady, and a
	// kube-proxy without rules, are no reasons to move.
	best := k.best(e)
	if deaf && len(k.hearing(e, slices.Clone(best))) > 0 {
		return i, false
	}
	if k.nodes[i].leaving() {
		best = k.fittest(best)
	}
	return i, slices.Contains(best, i)
}

// act turns the owner of e into an Answer or a Take of this node.
func (k *compiler) act(e *address, me int) {
	claim := e.claim
	mine := claim.Node == k.me
	_, cut := k.view.Cut[e.addr]
	switch {
	case e.owner == me && mine && !cut:
		answer := k.answer(e, me, claim.Epoch, "")
		answer.Awaits = k.nodes[me].stops() && k.awaits(e, me)
		k.plan.L2.Answers[e.addr] = answer
		k.tellRefusal(e, "but a stranger (%s) answers for it too: find that host, its clients reach one or the other")
	case e.owner == me:
		take := Take{Address: e.addr, Answer: k.answer(e, me, claim.Epoch+1, ""), From: claim.Node, Cause: k.cause(e, claim)}
		if mine {
			// If another node owns it and the question to that was lost, its claim wins.
			take.Epoch, take.Cause = claim.Epoch, Returned
		} else {
			take.Preference = k.preferenceText(e)
		}
		// An owner that hands over answers until its successor does: that is no refusal,
		// nor is one from before it began to hand over.
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
				owners := &k.plan.L2.Owners
				if owners.refusing == nil {
					owners.refusing = map[netip.Addr]string{}
				}
				owners.refusing[e.addr] = r.Node // the LAN overrides gossip
			}
			k.plan.L2.Barred = append(k.plan.L2.Barred, take)
			k.tellRefusal(e, "and a stranger (%s) answers for it: it is not announced while that host is there; take the address out of the pool or from the host")
		} else {
			k.plan.L2.Take = append(k.plan.L2.Take, take)
		}
	case mine && cut: // this node stays silent, and another takes the address
	case mine && e.outpreferred: // without a time limit: this node may serve it
		k.expect(e, claim.Epoch)
		k.plan.L2.Answers[e.addr] = k.answer(e, me, claim.Epoch, "")
	case mine && k.nodes[me].alive:
		k.handOver(e, me, claim.Epoch)
	}
}

// doubts reports whether this node should ask the LAN before it takes e from a live owner
// that, as this node sees it, may not serve it. If the address was taken from this node
// before, other nodes see the cluster differently. This node trusts its watch if that shows
// at least the claim; but each kind has a watch of its own, and where two nodes have taken
// the address from each other repeatedly, one of them lags even so. An owner that is
// leaving is not doubted: it says so itself.
//
// Nor is one that hands e over to this very node: two watches agree. That cannot go on for
// ever: the owner says so of one claim of its own, and it makes another one only after its
// own watch has brought news, since its plan leaves the address to this node until then.
func (k *compiler) doubts(e *address, claim Claim) bool {
	if k.view.Facts[claim.Node].HandsOver[e.addr] == (Claim{claim.Epoch + 1, k.me}) {
		return false
	}
	lost := k.view.Lost[e.addr]
	return lost.isFlapping(k.now) || lost.Times > 0 && !k.isPublished(e.addr, claim)
}

// isPublished reports whether this node's watch shows claim in a SpeakerStatus, or could
// not, since its node has more claims than a SpeakerStatus lists.
func (k *compiler) isPublished(a netip.Addr, claim Claim) bool {
	s, ok := k.c.SpeakerStatuses.Get(nodeKey(claim.Node))
	return k.published[a].Claim == claim || ok && s.Status.AnnouncingCount > int64(len(s.Status.Announcing))
}

// handOver keeps answering for an address that should move until it has moved. A node that
// is leaving and still eligible can serve it as before, so it does so without a time limit.
func (k *compiler) handOver(e *address, me int, epoch int64) {
	bounded := k.serves(e, me) < len(e.users)
	if bounded {
		k.expect(e, epoch)
	}
	since, handing := k.view.HandingOver[e.addr]
	if bounded && handing && k.now.Sub(since) >= handOverGrace {
		return
	}
	answer := k.answer(e, me, epoch, k.nodes[e.owner].name)
	if len(answer.Interfaces) == 0 && k.nodes[me].known {
		return // no link is left to answer on
	}
	k.plan.L2.Answers[e.addr] = answer
	if !bounded {
		return
	}
	if !handing {
		since = k.now
	}
	k.wakeAt(since.Add(handOverGrace))
}

// expect notes the claim that is to follow one of this node.
func (k *compiler) expect(e *address, epoch int64) {
	if k.plan.L2.HandsOver == nil {
		k.plan.L2.HandsOver = map[netip.Addr]Claim{}
	}
	k.plan.L2.HandsOver[e.addr] = Claim{epoch + 1, k.nodes[e.owner].name}
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

// addressInUse is the reason of problems that come from asking the LAN.
const addressInUse = "AddressInUse"

// LocalProblems are the problems that only this node can know: those of other hosts on its
// LAN that answer for an address, and those that its kube-proxy reports.
func (p *Plan) LocalProblems() (heard []snapshot.Problem) {
	for _, problem := range p.Problems {
		if problem.Reason == addressInUse || problem.Reason == unknownToKubeProxy {
			heard = append(heard, problem)
		}
	}
	return heard
}

// status is the status of this node's SpeakerStatus.
func (k *compiler) status() v1alpha1.SpeakerStatusStatus {
	var s v1alpha1.SpeakerStatusStatus
	for a, answer := range k.plan.L2.Answers {
		for _, svc := range answer.Services {
			s.Announcing = append(s.Announcing, v1alpha1.Announcing{
				Service: svc.String(), Address: a.String(), Protocol: ProtocolL2, Epoch: answer.Epoch, Interfaces: answer.Interfaces,
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
		for _, p := range i.Prefixes {
			v.Addresses = append(v.Addresses, p.String())
		}
		for _, p := range i.Routes {
			v.Routes = append(v.Routes, p.String())
		}
		v.Prefixes = slices.Concat(v.Addresses, v.Routes)
		for _, g := range i.Gateways {
			v.Gateways = append(v.Gateways, g.String())
		}
		out = append(out, v)
	}
	return out
}

// Wake is the duration from now until NextWake; zero: never.
func (p *Plan) Wake(now time.Time) time.Duration {
	if p.NextWake.IsZero() {
		return 0
	}
	return max(time.Millisecond, p.NextWake.Sub(now))
}

package assign_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
	"quayside.io/controller/assign"
	"quayside.io/lbpool"
)

func options() assign.Options { return assign.Options{DefaultLoadBalancer: true, ExternalIPs: true} }

// TestHistories lets people change a small cluster at random while the leader
// compiles and writes, writes get lost or land late with nobody knowing, and
// leaders change. It checks every single write when it lands, and every
// settled cluster against the twin.
func TestHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &history{T: t, c: snapshot.Of(drawPool(t)), now: noon(), rest: newRestTwin()}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			for range rapid.IntRange(0, 4).Draw(t, "changes") {
				h.c = drawChange(t, h.c)
			}
			h.land(false)
			h.rest.look(h.c, h.now)
			h.now = h.now.Add(time.Duration(rapid.IntRange(0, 12).Draw(t, "time")) * 700 * time.Millisecond)
			if rapid.IntRange(0, 5).Draw(t, "new leader") == 0 {
				h.land(true) // it has waited for the deadline of writes
				h.prev = nil
				h.rest.look(h.c, h.now)
				h.rest.leaderChanges(h.c, h.now)
			}
			h.prev = compileTwice(t, h.c, h.prev, h.inflight(), h.now)
			h.rest.check(t, h.c, h.prev, h.inflight(), h.now)
			h.carryOut()
			h.rest.look(h.c, h.now)
			if rapid.IntRange(0, 3).Draw(t, "quiet") == 0 {
				h.land(true)
				h.c, h.prev = settle(t, h.c, h.prev, h.now, options())
				h.rest.look(h.c, h.now)
				h.rest.check(t, h.c, h.prev, nil, h.now)
				checkSettled(t, twin{h.c, h.prev.Freed, h.now}, h.prev)
			}
		}
	})
}

// history is a cluster and its leader.
type history struct {
	*rapid.T
	c     *snapshot.Cluster
	prev  *assign.Plan
	now   time.Time
	limbo []write // their outcome is not known
	rest  *restTwin
}

// A write lands only on the object that it was made for, as resourceVersion
// sees to in a real cluster.
type write struct {
	svc, on  *corev1.Service
	before   *snapshot.Cluster
	inflight assign.Inflight // as the plan knew it
}

func (h *history) inflight() assign.Inflight {
	in := assign.Inflight{}
	for _, w := range h.limbo {
		in[snapshot.KeyOf(w.svc)] = append(in[snapshot.KeyOf(w.svc)], statusOf(w.svc)...)
	}
	return in
}

// land decides about writes in limbo: each lands, is lost, or goes on to be
// unknown, unless all are to be decided.
func (h *history) land(all bool) {
	waiting := h.limbo
	h.limbo = nil
	for _, w := range waiting {
		switch fate := rapid.IntRange(0, 2).Draw(h.T, "fate in limbo"); {
		case fate == 0 && !all:
			h.limbo = append(h.limbo, w)
		case fate == 1:
			h.write(w)
		}
	}
}

func (h *history) write(w write) {
	if on, _ := h.c.Services.Get(snapshot.KeyOf(w.svc)); on == w.on {
		checkWrite(h.T, h.c, w)
		h.c = h.c.With(w.svc)
	}
}

// carryOut writes a plan in random order. A write may land, be refused, or
// end in limbo.
func (h *history) carryOut() {
	before, inflight := h.c, h.inflight()
	for _, i := range rapid.Permutation(indexes(len(h.prev.Updates))).Draw(h.T, "order") {
		fate := rapid.IntRange(0, 5).Draw(h.T, "fate")
		wanted := h.prev.Updates[i].Object()
		svc, ok := wanted.(*corev1.Service)
		switch {
		case fate == 0: // refused
		case !ok:
			h.c = h.c.With(wanted)
		default:
			on, _ := before.Services.Get(snapshot.KeyOf(svc))
			if w := (write{svc, on, before, inflight}); fate == 1 {
				h.limbo = append(h.limbo, w)
			} else {
				h.write(w)
			}
		}
	}
}

// compileTwice compiles with what the last plan remembers and without, which
// must not matter, and checks what a plan must be by itself.
func compileTwice(t *rapid.T, c *snapshot.Cluster, prev *assign.Plan, inflight assign.Inflight, now time.Time) *assign.Plan {
	var bare *assign.Plan
	if prev != nil {
		bare = &assign.Plan{Holdings: prev.Holdings, Freed: prev.Freed}
	}
	fresh := assign.Compile(c, bare, inflight, now, options())
	plan := assign.Compile(c, prev, inflight, now, options())
	if diff := samePlan(fresh, plan); diff != "" {
		t.Fatalf("memory changes the plan: %s", diff)
	}
	if !plan.NextWake.IsZero() && !plan.NextWake.After(now) {
		t.Fatalf("at %v it wants to be woken at %v: the controller would spin", now, plan.NextWake)
	}
	return plan
}

func indexes(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// checkWrite: the address that a Service gets is nobody else's at this moment,
// and the one that it loses was not legal or not what it asks for.
func checkWrite(t *rapid.T, now *snapshot.Cluster, made write) {
	before, svc := made.before, made.svc
	old, _ := before.Services.Get(snapshot.KeyOf(svc))
	had, has := statusOf(old), statusOf(svc)
	w := twin{c: before} // the pools that the plan knew
	for _, a := range has {
		if slices.Contains(had, a) {
			continue
		}
		for _, o := range now.Services.All() {
			known, _ := before.Services.Get(snapshot.KeyOf(o))
			if _, ours := o.Annotations[loadbalancer.AnnotationGiven]; !ours && (known == nil || !slices.Contains(statusOf(known), a)) {
				continue // another controller gave it a moment ago
			}
			if o.Name != svc.Name && slices.Contains(statusOf(o), a) && !mayShare(svc, o, false) {
				t.Fatalf("%v goes to %s while %s has it", a, svc.Name, o.Name)
			}
		}
		for key, o := range before.Services.All() {
			repeated := slices.Contains(made.inflight[snapshot.KeyOf(svc)], a) // it may have had it before
			if key != snapshot.KeyOf(svc) && w.keepsListed(o, a) && !repeated {
				t.Fatalf("%v goes to %s although %v lists it in spec.externalIPs", a, svc.Name, key)
			}
		}
		p := w.poolOf(a)
		if p == nil || w.isNode(a) {
			t.Fatalf("%v goes to %s and is not ours to give", a, svc.Name)
			return // for staticcheck, which does not know that Fatalf ends the test
		}
		if p.Spec.Drain || !w.serves(p, svc) {
			t.Fatalf("%v goes to %s although pool %s drains (%v) or does not serve it", a, svc.Name, p.Name, p.Spec.Drain)
		}
		if named := strings.Split(svc.Annotations[loadbalancer.AnnotationAddresses], ","); !slices.Contains(named, a.String()) && (isReserved(p, a) || isAvoided(p, a)) {
			t.Fatalf("%v goes to %s, which does not ask for it, though pool %s gives it to nobody else", a, svc.Name, p.Name)
		}
	}
	_, ours := old.Annotations[loadbalancer.AnnotationGiven]
	outside := slices.ContainsFunc(had, func(a netip.Addr) bool { return w.poolOf(a) == nil })
	for _, a := range had {
		if slices.Contains(has, a) {
			continue
		}
		switch {
		case !ours && (!isOurs(svc) || outside):
			t.Fatalf("%s loses %v, which we did not give", svc.Name, a)
		case len(asks(svc)) > 0 || !isOurs(svc) || !w.mayStay(a, old):
		case policyOf(svc) == corev1.IPFamilyPolicySingleStack && svc.Spec.IPFamilies[0] == familyOf(a),
			policyOf(svc) == corev1.IPFamilyPolicyPreferDualStack && len(has) < 2:
			t.Fatalf("%s loses %v, which was legal, and has %v", svc.Name, a, has)
		}
	}
}

func familyOf(a netip.Addr) corev1.IPFamily {
	return map[lbpool.Family]corev1.IPFamily{lbpool.IPv4: corev1.IPv4Protocol, lbpool.IPv6: corev1.IPv6Protocol}[lbpool.FamilyOf(a)]
}

// asks returns what a Service asks for by name.
func asks(s *corev1.Service) []string {
	return slices.DeleteFunc([]string{s.Annotations["metallb.io/address-pool"], s.Annotations[loadbalancer.AnnotationAddresses]}, func(s string) bool { return s == "" })
}

// checkSettled: nobody legal waits while there is an address for it, everybody
// is told the truth, and the counters are right.
func checkSettled(t *rapid.T, w twin, plan *assign.Plan) {
	for key, s := range w.c.Services.All() {
		checkListed(t, w, s, plan)
		if !isOurs(s) {
			continue
		}
		i := slices.IndexFunc(s.Status.Conditions, func(c metav1.Condition) bool { return c.Type == assign.ConditionAddress })
		if i < 0 {
			t.Fatalf("%v has no condition", key)
		}
		told := slices.ContainsFunc(plan.Problems, func(p snapshot.Problem) bool {
			return p.Object.Key == key && p.Object.Kind == "Service" && p.Reason != assign.ReasonSharedAcrossNamespaces &&
				!strings.HasPrefix(p.Message, "spec.externalIPs")
		})
		if good := s.Status.Conditions[i].Status == "True"; good == told || good && len(statusOf(s)) == 0 {
			t.Fatalf("%v is told %v, has %v, and a Problem is told: %v", key, s.Status.Conditions[i], statusOf(s), told)
		}
		if len(s.Status.LoadBalancer.Ingress) == 0 && len(asks(s)) == 0 {
			checkWaits(t, w, s)
		}
	}
	for _, p := range w.c.IPAddressPools.Sorted() {
		var want [4]int64
		for _, a := range w.all(p) {
			f := map[bool]int{true: 0, false: 1}[a.Is4()]
			if taken := slices.ContainsFunc(w.c.Services.Sorted(), func(s *corev1.Service) bool { return slices.Contains(statusOf(s), a) || w.keepsListed(s, a) }); taken {
				want[f]++
			} else if !p.Spec.Drain && !w.isNode(a) && !isReserved(p, a) && !isAvoided(p, a) && !w.isResting(p, a) {
				want[2+f]++
			}
		}
		if s := p.Status; want != [4]int64{s.AssignedIPv4, s.AssignedIPv6, s.AvailableIPv4, s.AvailableIPv6} {
			t.Fatalf("pool %s counts %+v, the twin %v", p.Name, s, want)
		}
	}
}

// checkListed: a Service is told what is wrong with its spec.externalIPs, and
// nothing else.
func checkListed(t *rapid.T, w twin, s *corev1.Service, plan *assign.Plan) {
	for _, text := range s.Spec.ExternalIPs {
		var told string
		for _, p := range plan.Problems {
			if p.Object == snapshot.RefOf(s) && strings.HasPrefix(p.Message, "spec.externalIPs") &&
				strings.Contains(p.Message, "lists "+text+",") && p.Reason != assign.ReasonSharedAcrossNamespaces {
				told = p.Reason
			}
		}
		if want := w.whyNotListed(s, netip.MustParseAddr(text)); told != want {
			t.Fatalf("%s/%s lists %s and is told %q, the twin says %q", s.Namespace, s.Name, text, told, want)
		}
	}
}

// checkWaits: the twin finds no address either.
func checkWaits(t *rapid.T, w twin, s *corev1.Service) {
	for _, p := range w.c.IPAddressPools.Sorted() {
		if !w.admits(p, s) {
			continue
		}
		found := map[corev1.IPFamily]netip.Addr{}
		for _, a := range w.all(p) {
			if slices.Contains(s.Spec.IPFamilies, familyOf(a)) && w.isFree(a, s) {
				found[familyOf(a)] = a
			}
		}
		if len(found) == 2 || len(found) == 1 && policyOf(s) != corev1.IPFamilyPolicyRequireDualStack {
			t.Fatalf("%s/%s waits (%v) although pool %s has %v", s.Namespace, s.Name, s.Status.Conditions, p.Name, found)
		}
	}
}

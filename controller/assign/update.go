package assign

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
)

// Update is one object whose status (of a Service also annotations) is not what
// it should be. A plan says so in few words: copies of thousands of Services,
// and sentences about them, take longer to make than all decisions, so they are
// made one by one, when they are written.
type Update struct {
	// Was is the object as the plan found it.
	Was snapshot.Object

	next    snapshot.Object // Was as it should be; nil for a Service, whose outcome says it
	outcome outcome
}

// Event is one change, reported once.
type Event struct {
	About   snapshot.Ref
	Type    string // corev1.EventTypeNormal or corev1.EventTypeWarning
	Reason  string
	Message string
}

// Object returns the object as it should be. It shares unchanged parts with
// Was and must not be modified.
func (u *Update) Object() snapshot.Object {
	if u.next != nil {
		return u.next
	}
	return u.outcome.object()
}

// Event returns what to report when the write has succeeded; false: nothing.
func (u *Update) Event() (Event, bool) {
	if u.next != nil {
		return Event{}, false
	}
	return u.outcome.event()
}

// compare orders updates by the key of their objects.
func (u Update) compare(o Update) int { return snapshot.KeyOf(u.Was).Compare(snapshot.KeyOf(o.Was)) }

// outcome is what a plan decides about one Service. It belongs to a plan and never
// changes, unlike the consumer that it comes from.
type outcome struct {
	svc     *corev1.Service
	role    role
	holds   []Holding // what belongs in status
	trouble *trouble  // nil: none
	at      *time.Time
}

// A role is what a Service is to us.
type role uint8

const (
	served    role = iota // ours: status shows what it holds
	warned                // ours, but what it has goes with the next plan; this one warns
	foreign               // ours, but with another controller's address, which is left alone
	released              // not for us any more: what we gave goes
	unrelated             // not for us: at most words of ours are still on it
)

// object is the Service as it should be.
func (v *outcome) object() *corev1.Service {
	svc := *v.svc
	svc.Status.LoadBalancer.Ingress = v.ingress()
	svc.Status.Conditions, _ = v.conditions()
	svc.Annotations = maps.Clone(v.svc.Annotations)
	if origin := v.origin(); origin == "" {
		delete(svc.Annotations, loadbalancer.AnnotationGiven)
	} else {
		if svc.Annotations == nil {
			svc.Annotations = map[string]string{}
		}
		svc.Annotations[loadbalancer.AnnotationGiven] = origin
	}
	return &svc
}

// isFact reports whether the Service is as it should be.
func (v *outcome) isFact() bool {
	have, given := v.svc.Annotations[loadbalancer.AnnotationGiven]
	if origin := v.origin(); !v.keepsEntries() || given != (origin != "") || have != origin {
		return false
	}
	_, news := v.conditions()
	return !news
}

// keepsEntries reports whether status.loadBalancer.ingress stays as it is.
func (v *outcome) keepsEntries() bool {
	switch v.role {
	case served, released:
		return slices.EqualFunc(v.svc.Status.LoadBalancer.Ingress, v.holds, isEntryOf)
	}
	return true
}

// ingress is status.loadBalancer.ingress as it should be.
func (v *outcome) ingress() []corev1.LoadBalancerIngress {
	if v.keepsEntries() {
		return v.svc.Status.LoadBalancer.Ingress
	}
	vip := corev1.LoadBalancerIPModeVIP
	want := make([]corev1.LoadBalancerIngress, len(v.holds))
	for i, h := range v.holds {
		want[i] = corev1.LoadBalancerIngress{IP: h.Address.String(), IPMode: &vip}
	}
	return want
}

func isEntryOf(in corev1.LoadBalancerIngress, h Holding) bool {
	have, err := netip.ParseAddr(in.IP)
	return err == nil && have == h.Address && in.Hostname == "" && in.IPMode != nil && *in.IPMode == corev1.LoadBalancerIPModeVIP
}

// origin is the value of loadbalancer.AnnotationGiven: the pools of the addresses, in their
// order; empty: it is not to be there.
func (v *outcome) origin() string {
	switch {
	case v.role == warned:
		return v.svc.Annotations[loadbalancer.AnnotationGiven]
	case v.role != served || len(v.holds) == 0:
		return ""
	case len(v.holds) == 1:
		return v.holds[0].Pool
	}
	var names []string
	for _, h := range v.holds {
		if !slices.Contains(names, h.Pool) {
			names = append(names, h.Pool)
		}
	}
	return strings.Join(names, ",")
}

// conditions are those of the Service as they should be, and whether that is a
// change.
func (v *outcome) conditions() ([]metav1.Condition, bool) {
	var told metav1.Condition
	switch {
	case v.role == released || v.role == unrelated:
	case !v.denial().isZero():
		told = metav1.Condition{Type: ConditionAddress, Status: metav1.ConditionFalse, Reason: v.denial().reason, Message: v.sentence()}
	default:
		told = metav1.Condition{Type: ConditionAddress, Status: metav1.ConditionTrue, Reason: ReasonAssigned}
		if origin := v.origin(); strings.Contains(origin, ",") {
			told.Message = "from pools " + origin
		} else if origin != "" {
			told.Message = "from pool " + origin
		}
	}
	list, news := withCondition(v.svc.Status.Conditions, ConditionAddress, told, *v.at)
	if v.role == warned { // nobody has asked yet whether its terms suit the others
		return list, news
	}
	list, more := withCondition(list, loadbalancer.ConditionSharing, v.sharing(), *v.at)
	return list, news || more
}

// sharing is the condition that records on which terms a Service shares what it
// holds; empty: it is not to be there. Services that share nothing have none, so
// that an upgrade does not write them all.
func (v *outcome) sharing() metav1.Condition {
	if v.role != served || len(v.holds) == 0 {
		return metav1.Condition{}
	}
	terms := loadbalancer.TermsOf(v.svc)
	if terms == "" {
		return metav1.Condition{}
	}
	return metav1.Condition{Type: loadbalancer.ConditionSharing, Status: metav1.ConditionTrue, Reason: ReasonShared, Message: terms}
}

// sentence is the denial, with what the Service has meanwhile.
func (v *outcome) sentence() string {
	if len(v.holds) == 0 || v.role != served {
		return v.denial().message
	}
	return v.denial().message + "; it keeps " + join(addresses(v.holds)) + " meanwhile"
}

func (v *outcome) denial() denial { return v.trouble.denial() }

func addresses(holds []Holding) []netip.Addr {
	list := make([]netip.Addr, len(holds))
	for i, h := range holds {
		list[i] = h.Address
	}
	return list
}

func join(addrs []netip.Addr) string {
	if len(addrs) == 1 {
		return addrs[0].String()
	}
	var s []string
	for _, a := range addrs {
		s = append(s, a.String())
	}
	return several(s, " and ")
}

// event is the one event about a Service that changes: what it gets and what it
// loses. Why it has not what it asks for, and that it will lose what it has, is a
// Problem of the plan, which is told as such.
func (v *outcome) event() (Event, bool) {
	event := func(kind, reason, message string) (Event, bool) {
		return Event{snapshot.RefOf(v.svc), kind, reason, message}, true
	}
	gained := join(addresses(slices.DeleteFunc(slices.Clone(v.holds), func(h Holding) bool { return !h.Pending })))
	var taken []string
	for _, l := range v.trouble.losses() {
		taken = append(taken, fmt.Sprintf("%v was taken away: %s", l.addr, l.why))
	}
	_, given := v.svc.Annotations[loadbalancer.AnnotationGiven]
	switch {
	case gained != "" && len(taken) > 0:
		return event(corev1.EventTypeWarning, EventAllocated, fmt.Sprintf("Assigned %s from pool %s; %s", gained, v.origin(), several(taken, "; ")))
	case gained != "":
		return event(corev1.EventTypeNormal, EventAllocated, "Assigned "+gained+" from pool "+v.origin())
	case len(taken) > 0:
		return event(corev1.EventTypeWarning, EventCleared, several(taken, "; "))
	case v.role == served && !given && len(v.holds) > 0:
		return event(corev1.EventTypeNormal, EventAdopted, fmt.Sprintf("Adopted %s, given by another controller: pool %s contains it", join(addresses(v.holds)), v.origin()))
	}
	return Event{}, false
}

func isOurCondition(c metav1.Condition) bool {
	return c.Type == ConditionAddress || c.Type == loadbalancer.ConditionSharing
}

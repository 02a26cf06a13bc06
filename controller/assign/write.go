package assign

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// writeServices adds the Services whose status, annotation or condition is
// not what it should be.
func (w *work) writeServices() {
	none := metav1.Condition{}
	for _, c := range w.sorted {
		if c.settled && c.isContent() {
			continue
		}
		if !c.refused.isZero() && c.managed {
			w.problem(c.ref(), c.refused.reason, c.sentence(c.refused.message))
		}
		switch {
		case c.leaving:
			w.update(c, c.svc.Status.LoadBalancer.Ingress, c.svc.Annotations[AnnotationGiven], w.condition(c))
		case c.managed && c.foreign:
			w.update(c, c.svc.Status.LoadBalancer.Ingress, "", w.condition(c))
		case c.managed:
			w.update(c, w.ingress(c), w.origin(c), w.condition(c))
		case c.given:
			w.update(c, nil, "", none)
		case wasOurs(c.svc):
			w.update(c, c.svc.Status.LoadBalancer.Ingress, "", none)
		}
	}
}

// sentence completes a refusal with what the Service has meanwhile.
func (c *claim) sentence(message string) string {
	if len(c.holds) == 0 || c.foreign {
		return message
	}
	return message + "; it keeps " + join(c.holds) + " meanwhile"
}

func join(addrs []netip.Addr) string {
	if len(addrs) == 1 {
		return addrs[0].String()
	}
	var s []string
	for _, a := range addrs {
		s = append(s, a.String())
	}
	return strings.Join(s, " and ")
}

// condition is what the Service is told.
func (w *work) condition(c *claim) metav1.Condition {
	told := metav1.Condition{Type: ConditionAddress, Status: metav1.ConditionTrue, Reason: ReasonAssigned}
	switch {
	case !c.refused.isZero():
		told.Status, told.Reason, told.Message = metav1.ConditionFalse, c.refused.reason, c.sentence(c.refused.message)
	case len(c.holds) > 0:
		home := w.home(c, c.holds[0])
		told.Message = home.assigned // no new string for each of many Services
		if origin := w.origin(c); origin != home.obj.Name {
			told.Message = "from pools " + origin
		}
	}
	return told
}

// origin names the pools of a Service's addresses, in their order.
func (w *work) origin(c *claim) string {
	if len(c.holds) == 0 {
		return ""
	}
	first := w.home(c, c.holds[0])
	if !slices.ContainsFunc(c.holds, func(a netip.Addr) bool { return w.home(c, a) != first }) {
		return first.obj.Name
	}
	var names []string
	for _, a := range c.holds {
		if name := w.home(c, a).obj.Name; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// ingress is status.loadBalancer.ingress as it should be; the present one, if
// that is it.
func (w *work) ingress(c *claim) []corev1.LoadBalancerIngress {
	have := c.svc.Status.LoadBalancer.Ingress
	if slices.EqualFunc(have, c.holds, isEntryOf) {
		return have
	}
	want := make([]corev1.LoadBalancerIngress, len(c.holds))
	for i, a := range c.holds {
		want[i] = corev1.LoadBalancerIngress{IP: a.String(), IPMode: &w.vip}
	}
	return want
}

func isEntryOf(in corev1.LoadBalancerIngress, a netip.Addr) bool {
	have, err := netip.ParseAddr(in.IP)
	return err == nil && have == a && in.Hostname == "" && in.IPMode != nil && *in.IPMode == corev1.LoadBalancerIPModeVIP
}

// update adds a Service to the plan unless it is already as it should be.
// No origin and an empty condition mean that nothing of ours is to be left.
func (w *work) update(c *claim, ingress []corev1.LoadBalancerIngress, origin string, condition metav1.Condition) {
	have := c.svc.Status.LoadBalancer.Ingress
	moved := len(ingress) != len(have) || (len(have) > 0 && &ingress[0] != &have[0])
	conditions, told := withCondition(c.svc.Status.Conditions, ConditionAddress, condition, w.now)
	if !moved && c.given == (origin != "") && c.svc.Annotations[AnnotationGiven] == origin && !told {
		c.settled = c.isContent()
		return
	}
	svc := *c.svc
	svc.Status.LoadBalancer.Ingress = ingress
	svc.Status.Conditions = conditions
	svc.Annotations = maps.Clone(c.svc.Annotations)
	if origin == "" {
		delete(svc.Annotations, AnnotationGiven)
	} else {
		if svc.Annotations == nil {
			svc.Annotations = map[string]string{}
		}
		svc.Annotations[AnnotationGiven] = origin
	}
	w.plan.Updates = append(w.plan.Updates, &svc)
	w.tell(c, told)
}

// tell adds the one event about a Service that changed.
func (w *work) tell(c *claim, told bool) {
	event := func(kind, reason, message string) {
		w.plan.Events = append(w.plan.Events, Event{c.ref(), kind, reason, message})
	}
	gained := c.holds
	if len(c.have) > 0 {
		gained = slices.DeleteFunc(slices.Clone(gained), func(a netip.Addr) bool { return slices.Contains(c.have, a) })
	}
	var taken []string
	for _, l := range c.lost {
		taken = append(taken, fmt.Sprintf("%v was taken away: %s", l.addr, l.why))
	}
	switch {
	case len(gained) > 0 && len(taken) > 0:
		event(corev1.EventTypeWarning, EventAllocated, fmt.Sprintf("Assigned %s from pool %s; %s", join(gained), w.origin(c), strings.Join(taken, "; ")))
	case len(gained) > 0:
		event(corev1.EventTypeNormal, EventAllocated, "Assigned "+join(gained)+" from pool "+w.origin(c))
	case len(taken) > 0:
		if !c.refused.isZero() {
			taken = append(taken, c.sentence(c.refused.message))
		}
		event(corev1.EventTypeWarning, EventCleared, strings.Join(taken, "; "))
	case c.leaving:
		event(corev1.EventTypeWarning, EventLeaving, c.refused.message)
	case !c.refused.isZero() && told:
		event(corev1.EventTypeWarning, EventFailed, c.refused.reason+": "+c.sentence(c.refused.message))
	case c.managed && !c.foreign && !c.given && len(c.holds) > 0:
		event(corev1.EventTypeNormal, EventAdopted, fmt.Sprintf("Adopted %s, given by another controller: pool %s contains it", join(c.holds), w.origin(c)))
	}
}

func isOurCondition(c metav1.Condition) bool { return c.Type == ConditionAddress }

package assign_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
	"quayside.io/controller/assign"
	"quayside.io/lbpool"
)

// twin answers the allocator's questions the slow way: address by address,
// Service by Service, from the objects alone.
type twin struct {
	c     *snapshot.Cluster
	freed []assign.Freed
	now   time.Time
}

// all lists the addresses of a pool as written, less what comes earlier in
// another pool.
func (w twin) all(p *v1alpha1.IPAddressPool) (list []netip.Addr) {
	for _, a := range written(p) {
		if w.poolOf(a) == p && !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	return list
}

func written(p *v1alpha1.IPAddressPool) (list []netip.Addr) {
	for _, s := range p.Spec.Addresses {
		r, err := lbpool.ParseRange(s)
		for a := r.From(); err == nil && !r.To().Less(a); a = a.Next() {
			list = append(list, a)
		}
	}
	return list
}

func (w twin) poolOf(a netip.Addr) *v1alpha1.IPAddressPool {
	for _, p := range w.c.IPAddressPools.Sorted() { // all equally old in these worlds
		if slices.Contains(written(p), a) {
			return p
		}
	}
	return nil
}

func (w twin) isNode(a netip.Addr) bool {
	for _, n := range w.c.Nodes.All() {
		for _, na := range n.Status.Addresses {
			if na.Address == a.String() {
				return true
			}
		}
	}
	return false
}

func isReserved(p *v1alpha1.IPAddressPool, a netip.Addr) bool {
	return slices.ContainsFunc(p.Spec.Reserved, func(s string) bool {
		r, err := lbpool.ParseReserved(s)
		return err == nil && r.Contains(a)
	})
}

func isAvoided(p *v1alpha1.IPAddressPool, a netip.Addr) bool {
	return p.Spec.AvoidBuggyIPs && a.Is4() && (strings.HasSuffix(a.String(), ".0") || strings.HasSuffix(a.String(), ".255"))
}

func (w twin) isResting(p *v1alpha1.IPAddressPool, a netip.Addr) bool {
	return p.Spec.ReuseAfter != nil && slices.ContainsFunc(w.freed, func(f assign.Freed) bool {
		return f.Address == a && w.now.Before(f.At.Add(p.Spec.ReuseAfter.Duration))
	})
}

// admits reports whether a pool serves a Service that does not name it.
func (w twin) admits(p *v1alpha1.IPAddressPool, s *corev1.Service) bool {
	return !p.Spec.Drain && (p.Spec.AutoAssign == nil || *p.Spec.AutoAssign) && w.serves(p, s)
}

// serves reports whether a pool serves a Service that names it.
func (w twin) serves(p *v1alpha1.IPAddressPool, s *corev1.Service) bool {
	to := p.Spec.AllocateTo
	if to == nil {
		return true
	}
	any := func(list []metav1.LabelSelector, set map[string]string) bool {
		return slices.ContainsFunc(list, func(s metav1.LabelSelector) bool {
			selector, _ := metav1.LabelSelectorAsSelector(&s)
			return selector.Matches(labels.Set(set))
		})
	}
	ns, _ := w.c.Namespaces.Get(snapshot.Key{Name: s.Namespace})
	if ns == nil {
		ns = &corev1.Namespace{}
	}
	pinned := len(to.Namespaces)+len(to.NamespaceSelectors) > 0
	return (!pinned || slices.Contains(to.Namespaces, s.Namespace) || any(to.NamespaceSelectors, ns.Labels)) &&
		(len(to.ServiceSelectors) == 0 || any(to.ServiceSelectors, s.Labels))
}

// statusOf returns the addresses in a status.
func statusOf(s *corev1.Service) (list []netip.Addr) {
	for _, in := range s.Status.LoadBalancer.Ingress {
		if a, err := netip.ParseAddr(in.IP); err == nil {
			list = append(list, a)
		}
	}
	return list
}

// mayShare reports whether two Services may come together on one address;
// strangers says whether they may do so from different namespaces unpermitted.
func mayShare(a, b *corev1.Service, strangers bool) bool {
	key := a.Annotations[loadbalancer.AnnotationSharingKey]
	if key == "" || key != b.Annotations[loadbalancer.AnnotationSharingKey] || a.Spec.Ports[0].Port == b.Spec.Ports[0].Port ||
		a.Spec.ExternalTrafficPolicy != b.Spec.ExternalTrafficPolicy { // selectors are all alike in these worlds
		return false
	}
	admits := func(s *corev1.Service, ns string) bool {
		list := s.Annotations[loadbalancer.AnnotationSharingNamespaces]
		return list == "*" || list == ns
	}
	return strangers || a.Namespace == b.Namespace || admits(a, b.Namespace) && admits(b, a.Namespace)
}

// isFree reports whether a Service could be given an address at once.
func (w twin) isFree(a netip.Addr, s *corev1.Service) bool {
	p := w.poolOf(a)
	if p == nil || w.isNode(a) {
		return false
	}
	taken := false
	for _, o := range w.c.Services.All() {
		if w.keepsListed(o, a) {
			return false
		}
		if snapshot.KeyOf(o) != snapshot.KeyOf(s) && slices.Contains(statusOf(o), a) {
			if taken = true; !mayShare(s, o, false) {
				return false
			}
		}
	}
	// Joining others needs no address of its own.
	return !isReserved(p, a) && !isAvoided(p, a) && (taken || !w.isResting(p, a))
}

// isListed reports whether an address is on a Service by spec.externalIPs alone.
func isListed(s *corev1.Service, a netip.Addr) bool {
	return slices.Contains(s.Spec.ExternalIPs, a.String()) && !slices.Contains(statusOf(s), a)
}

// keepsListed reports whether a Service keeps an address from others by listing it.
func (w twin) keepsListed(o *corev1.Service, a netip.Addr) bool {
	return isListed(o, a) && w.whyNotListed(o, a) == ""
}

// whyNotListed returns the reason why an address that a Service lists in
// spec.externalIPs is not announced for it, or only as long as nobody gets it, or "".
func (w twin) whyNotListed(s *corev1.Service, a netip.Addr) string {
	switch {
	case !isListed(s, a):
		return ""
	case w.isNode(a):
		return assign.ReasonNodeAddress
	case w.poolOf(a) == nil:
		return assign.ReasonAddressOutsidePools
	}
	for _, o := range w.c.Services.All() {
		holds := slices.Contains(statusOf(o), a)
		if isListed(o, a) && older(o, s) {
			why := w.whyNotListed(o, a)
			holds = why == "" || why == assign.ReasonPoolNotAllowed
		}
		if o != s && holds && !mayShare(s, o, true) {
			return assign.ReasonAddressInUse
		}
	}
	if !w.serves(w.poolOf(a), s) {
		return assign.ReasonPoolNotAllowed
	}
	return ""
}

func older(a, b *corev1.Service) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return snapshot.KeyOf(a).Compare(snapshot.KeyOf(b)) < 0
}

// comesFirst reports whether a Service keeps what the other one must leave: who has
// not changed, then who is older.
func comesFirst(a, b *corev1.Service) bool {
	if hasChanged(a) != hasChanged(b) {
		return hasChanged(b)
	}
	return older(a, b)
}

// hasChanged reports whether a Service is not what it was when its status was
// written last, in what matters to those who share its addresses.
func hasChanged(s *corev1.Service) bool {
	for _, c := range s.Status.Conditions {
		if c.Type == loadbalancer.ConditionSharing {
			policy := "Cluster"
			if s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
				policy = "Local and the selector "
			}
			return c.Message != fmt.Sprintf("under the key %q, on TCP/%d, with externalTrafficPolicy %s",
				s.Annotations[loadbalancer.AnnotationSharingKey], s.Spec.Ports[0].Port, policy)
		}
	}
	return false
}

// mayStay reports whether a Service is certain to keep an address: nobody else
// is on it, whose own fate would have to be worked out first.
func (w twin) mayStay(a netip.Addr, s *corev1.Service) bool {
	if w.poolOf(a) == nil || w.isNode(a) {
		return false
	}
	for _, o := range w.c.Services.All() {
		if o != s && slices.Contains(statusOf(o), a) && comesFirst(o, s) && !mayShare(s, o, true) {
			return false
		}
	}
	return slices.Contains(s.Spec.IPFamilies, map[bool]corev1.IPFamily{true: corev1.IPv4Protocol, false: corev1.IPv6Protocol}[a.Is4()])
}

func isOurs(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeLoadBalancer && s.Spec.LoadBalancerClass == nil
}

func policyOf(s *corev1.Service) corev1.IPFamilyPolicy {
	if s.Spec.IPFamilyPolicy == nil {
		return corev1.IPFamilyPolicySingleStack
	}
	return *s.Spec.IPFamilyPolicy
}

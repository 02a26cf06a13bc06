package announce

import (
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
)

// Most changes in a large cluster change no plan: endpoints of a Service that has no
// address or is served by every node and has others, or on a node that has another of it;
// Services without an address; fields of Nodes and SpeakerStatuses that no plan reads. So
// a plan records what it has read, and is not compiled again while that stays the same.

// question is what a plan asks about endpoints: those of one Service in one family.
type question struct {
	service snapshot.Key
	is6     bool
}

// places are, with externalTrafficPolicy Local, the nodes with usable endpoints, and those
// whose endpoints are terminating, as sorted node indices; and else whether there is none.
type places struct {
	local, ending []int
	none          bool
}

func (p places) equal(o places) bool {
	return slices.Equal(p.local, o.local) && slices.Equal(p.ending, o.ending) && p.none == o.none
}

// reading is what a plan has read about endpoints.
type reading struct {
	me        string                // the node that the plan is for
	places    snapshot.Store[asked] // by Service
	nodeIndex map[string]int
}

// asked are the answers about one Service, for IPv4 and for IPv6; nil: not asked.
type asked [2]*places

func familyOf(is6 bool) int {
	if is6 {
		return 1
	}
	return 0
}

// answer returns the answer that the plan has used, if it has asked.
func (r *reading) answer(q question) (p places, known bool) {
	if all, _ := r.places.Get(q.service); all[familyOf(q.is6)] != nil {
		return *all[familyOf(q.is6)], true
	}
	return places{}, false
}

// placed returns the answers about a Service with one replaced by p.
func (r *reading) placed(q question, p places) asked {
	all, _ := r.places.Get(q.service)
	all[familyOf(q.is6)] = &p
	return all
}

// StillValid reports whether compiling is would give p again, which was compiled from was,
// with all other arguments equal and before NextWake, and whether is has nothing else that
// a speaker acts on. It may report false needlessly. The cost is linear in the differences
// between the two, not in their size.
func (p *Plan) StillValid(was, is *snapshot.Cluster) bool {
	if was.IsStale() != is.IsStale() { // see stepIn
		return false
	}
	for kind := range snapshot.Kinds() {
		if is.Changed(was, kind) && !p.reading.ignores(kind, was, is) {
			return false
		}
	}
	return true
}

// ignores reports whether no field of a kind has changed that was read.
func (r *reading) ignores(kind snapshot.Kind, was, is *snapshot.Cluster) bool {
	switch kind {
	case snapshot.EndpointSlice:
		return alike(was.EndpointSlices, is.EndpointSlices, func(a, b *discoveryv1.EndpointSlice) bool {
			return r.holds(a, is) && r.holds(b, is) // it may have moved to another Service
		})
	case snapshot.Service:
		return alike(was.Services, is.Services, func(a, b *corev1.Service) bool { return !hasAddress(a) && !hasAddress(b) })
	case snapshot.Node:
		return alike(was.Nodes, is.Nodes, sameNode)
	case snapshot.SpeakerStatus:
		return alike(was.SpeakerStatuses, is.SpeakerStatuses, r.sameStatus)
	case snapshot.Ingress, snapshot.IngressClass, snapshot.ConfigMap, snapshot.Namespace:
		return true // no plan reads them
	case snapshot.Secret:
		return r.me == "" // a speaker takes passwords from them
	}
	return false
}

// alike reports whether same holds for every object that differs between two stores. For
// an object that does not exist it gets nil.
func alike[V comparable](was, is snapshot.Store[V], same func(was, is V) bool) bool {
	for key := range snapshot.Diff(was, is) {
		before, _ := was.Get(key)
		after, _ := is.Get(key)
		if !same(before, after) {
			return false
		}
	}
	return true
}

// hasAddress reports whether a Service has an address or lists one in spec.externalIPs.
// Other Services are not read.
func hasAddress(svc *corev1.Service) bool {
	return svc != nil && (len(svc.Status.LoadBalancer.Ingress) > 0 || len(loadbalancer.ExternalIPs(svc)) > 0)
}

// sameNode compares the fields that are read of a Node. What a kubelet updates every few
// minutes is not among them.
func sameNode(a, b *corev1.Node) bool {
	return a != nil && b != nil && a.UID == b.UID && a.DeletionTimestamp.Equal(b.DeletionTimestamp) &&
		maps.Equal(a.Labels, b.Labels) && a.Spec.Unschedulable == b.Spec.Unschedulable &&
		slices.EqualFunc(a.Spec.Taints, b.Spec.Taints, func(a, b corev1.Taint) bool { return a.Key == b.Key }) &&
		slices.Equal(a.Status.Addresses, b.Status.Addresses) &&
		slices.EqualFunc(a.Status.Conditions, b.Status.Conditions, func(a, b corev1.NodeCondition) bool {
			return a.Type == b.Type && a.Status == b.Status
		})
}

// sameStatus compares the fields that are read of another node's SpeakerStatus. Its member
// counts and BGP sessions are not among them: they change often, and a thousand speakers
// watch them. Its gossip key is read by the speaker, not by the plan.
func (r *reading) sameStatus(a, b *v1alpha1.SpeakerStatus) bool {
	if a == nil || b == nil || a.Name == r.me {
		return false
	}
	was, is := &a.Status, &b.Status
	return sameFacts(a, b) && was.GossipKey == is.GossipKey && was.AnnouncingCount == is.AnnouncingCount &&
		reflect.DeepEqual(was.Announcing, is.Announcing)
}

// sameFacts compares the fields of a SpeakerStatus from which a node's facts are read, see
// factsOf.
func sameFacts(a, b *v1alpha1.SpeakerStatus) bool {
	if a == nil || b == nil {
		return false
	}
	was, is := &a.Status, &b.Status
	return was.Leaving == is.Leaving && (was.Members.Alive > 0) == (is.Members.Alive > 0) && reflect.DeepEqual(was.Interfaces, is.Interfaces)
}

// holds reports whether all questions about the Service of s have the same answers in c.
func (r *reading) holds(s *discoveryv1.EndpointSlice, c *snapshot.Cluster) bool {
	if s == nil {
		return true
	}
	service := serviceOf(s)
	for _, is6 := range []bool{false, true} {
		q := question{service, is6}
		if before, known := r.answer(q); known && !before.equal(placesOf(c, q, r.nodeIndex)) {
			return false
		}
	}
	return true
}

func serviceOf(s *discoveryv1.EndpointSlice) snapshot.Key {
	return snapshot.Key{Namespace: s.Namespace, Name: s.Labels[discoveryv1.LabelServiceName]}
}

// placesOf returns the nodes with a ready endpoint or, if there is none, those with an
// endpoint that is terminating and still serves.
func placesOf(c *snapshot.Cluster, q question, nodeIndex map[string]int) places {
	if svc, exists := c.Services.Get(q.service); exists && !loadbalancer.IsLocal(svc) {
		return places{none: hasNoEndpoint(c, q)}
	}
	ready, ending, _ := endpointNodes(c, q, nodeIndex)
	if len(ready) == 0 && len(ending) > 0 {
		return places{local: ending, ending: ending}
	}
	return places{local: ready, ending: ending}
}

// distinct sorts in, and leaves each once.
func distinct(in []int) []int {
	slices.Sort(in)
	return slices.Compact(in)
}

// placesOf answers a question and records the answer, once per Service and family.
func (k *compiler) placesOf(q question) places {
	all := k.asked[q.service]
	if all[familyOf(q.is6)] == nil {
		p := placesOf(k.c, q, k.nodeIndex)
		all[familyOf(q.is6)] = &p
		k.asked[q.service] = all
	}
	return *all[familyOf(q.is6)]
}

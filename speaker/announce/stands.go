package announce

import (
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"

	"quayside.io/cluster/snapshot"
)

// Most of what happens in a cluster is that endpoints come and go, and most of that
// changes no plan: the Service has no address or serves from every node, or the node
// had another endpoint already. A plan knows what it has read of endpoints, so that
// whoever holds it need not make the same one again.

// question is what a plan asks of endpoints: those of one Service in one family.
type question struct {
	service snapshot.Key
	is6     bool
}

// places are the nodes, in order, by index, with endpoints to offer, and those where
// they end.
type places struct{ local, ending []int }

func (p places) equal(o places) bool {
	return slices.Equal(p.local, o.local) && slices.Equal(p.ending, o.ending)
}

// reading is what a plan has read of endpoints, and by which numbers it calls nodes.
type reading struct {
	places    map[question]places
	nodeIndex map[string]int
}

// Stands reports whether p, made of was, is what Compile makes of is, too, with the
// same of everything else, and before NextWake. It costs what changed between the
// two, not what they hold. False may be wrong.
func (p *Plan) Stands(was, is *snapshot.Cluster) bool {
	for kind := range snapshot.Kinds() {
		if kind != snapshot.EndpointSlice && is.Changed(was, kind) {
			return false
		}
	}
	for key := range snapshot.Diff(was.EndpointSlices, is.EndpointSlices) {
		for _, c := range []*snapshot.Cluster{was, is} { // it may have moved to another Service
			if s, exists := c.EndpointSlices.Get(key); exists && !p.reading.holds(s, is) {
				return false
			}
		}
	}
	return true
}

// holds reports whether c answers all that was asked about the Service of s as before.
func (r *reading) holds(s *discoveryv1.EndpointSlice, c *snapshot.Cluster) bool {
	service := snapshot.Key{Namespace: s.Namespace, Name: s.Labels[discoveryv1.LabelServiceName]}
	for _, is6 := range []bool{false, true} {
		q := question{service, is6}
		if before, asked := r.places[q]; asked && !before.equal(placesOf(c, q, r.nodeIndex)) {
			return false
		}
	}
	return true
}

// placesOf are the nodes with a ready endpoint or, where no node has one, those with
// an endpoint that still serves, which are ending.
func placesOf(c *snapshot.Cluster, q question, nodeIndex map[string]int) places {
	family := discoveryv1.AddressTypeIPv4
	if q.is6 {
		family = discoveryv1.AddressTypeIPv6
	}
	ready, ending := []int{}, []int(nil)
	for _, s := range c.SlicesOf(q.service) {
		if s.AddressType != family {
			continue
		}
		for _, e := range s.Endpoints {
			if e.NodeName == nil {
				continue
			}
			i, exists := nodeIndex[*e.NodeName]
			switch c := e.Conditions; {
			case !exists: // no node can serve it locally
			case c.Ready == nil || *c.Ready:
				ready = append(ready, i)
			case c.Serving != nil && *c.Serving:
				ending = append(ending, i)
			}
		}
	}
	slices.Sort(ready)
	slices.Sort(ending)
	if ready, ending = slices.Compact(ready), slices.Compact(ending); len(ready) == 0 && len(ending) > 0 {
		return places{ending, ending}
	}
	return places{ready, ending}
}

// placesOf asks once for each Service and family, and notes what it was told.
func (k *compiler) placesOf(q question) places {
	p, asked := k.reading.places[q]
	if !asked {
		p = placesOf(k.c, q, k.nodeIndex)
		k.reading.places[q] = p
	}
	return p
}

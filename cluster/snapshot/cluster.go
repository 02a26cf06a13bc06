package snapshot

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Object is any Kubernetes object.
type Object interface {
	metav1.Object
	runtime.Object
}

// Cluster is everything known about the cluster at one moment. It is immutable;
// With and Without return the next one. The zero value and a nil pointer's
// zero value are an empty cluster.
type Cluster struct {
	Stores

	// Faults are problems of the source itself: a file that does not parse, an
	// object that cannot be decoded. The last good version stays in force.
	Faults []Problem

	slicesOf   Store[[]*discoveryv1.EndpointSlice] // by the Service they belong to
	reach      [numKinds]Reach
	generation [numKinds]uint64
}

// Unreachable is the reason of the Problem in Faults by which what is known is as old as the
// last contact with the API server.
const Unreachable = "Unreachable"

// IsStale reports whether the API server cannot be reached, so that two processes may know
// different clusters for as long as that lasts.
func (c *Cluster) IsStale() bool {
	return slices.ContainsFunc(c.Faults, func(p Problem) bool { return p.Reason == Unreachable })
}

// Of returns a Cluster of objects. It panics on an object of a kind that
// Cluster does not hold; KindOf tells beforehand.
func Of(objects ...Object) *Cluster { return (&Cluster{}).With(objects...) }

// Generation counts the changes of a kind. Two snapshots of one history with
// equal generations hold the same objects of that kind.
func (c *Cluster) Generation(k Kind) uint64 { return c.generation[k] }

// Changed reports whether any of kinds differs between c and old, which may be nil.
func (c *Cluster) Changed(old *Cluster, kinds ...Kind) bool {
	return old == nil || slices.ContainsFunc(kinds, func(k Kind) bool {
		return c.generation[k] != old.generation[k]
	})
}

// SlicesOf returns the EndpointSlices of a Service, ordered by name. The
// result must not be modified.
func (c *Cluster) SlicesOf(service Key) []*discoveryv1.EndpointSlice {
	list, _ := c.slicesOf.Get(service)
	return list
}

// With returns a Cluster in which each of objects stands in its newest version.
func (c *Cluster) With(objects ...Object) *Cluster {
	n := *c
	if len(objects) >= manyObjects {
		n.putAll(objects)
		return &n
	}
	table := n.table()
	for _, o := range objects {
		kind, ok := KindOf(o)
		if !ok {
			panic(fmt.Sprintf("snapshot: no place for a %T", o))
		}
		k := KeyOf(o)
		slice, isSlice := o.(*discoveryv1.EndpointSlice)
		if isSlice {
			n.unindexSlice(k)
		}
		table[kind].store.put(k, o)
		if isSlice {
			n.indexSlice(slice)
		}
		n.generation[kind]++
	}
	return &n
}

// manyObjects is for how many objects a store is made anew rather than changed: each
// change copies a path, a kilobyte or two.
const manyObjects = 1000

// putAll puts many objects, of several of one key the last.
func (c *Cluster) putAll(objects []Object) {
	var byKind [Faults][]Object
	for _, o := range objects {
		kind, ok := KindOf(o)
		if !ok {
			panic(fmt.Sprintf("snapshot: no place for a %T", o))
		}
		byKind[kind] = append(byKind[kind], o)
	}
	table := c.table()
	for kind, list := range byKind {
		table[kind].store.putAll(list)
		c.generation[kind] += uint64(len(list))
	}
	if len(byKind[EndpointSlice]) > 0 {
		c.indexSlices()
	}
}

// indexSlices finds of every Service its EndpointSlices.
func (c *Cluster) indexSlices() {
	index := make(map[Key][]*discoveryv1.EndpointSlice, c.EndpointSlices.Len())
	for _, s := range c.EndpointSlices.All() {
		if service, ok := serviceOf(s); ok {
			index[service] = append(index[service], s)
		}
	}
	for _, list := range index {
		slices.SortFunc(list, func(a, b *discoveryv1.EndpointSlice) int { return strings.Compare(a.Name, b.Name) })
	}
	c.slicesOf = Collect(len(index), maps.All(index))
}

// Without returns a Cluster that lacks the object of that kind and key.
func (c *Cluster) Without(kind Kind, k Key) *Cluster {
	n := *c
	if kind == EndpointSlice {
		n.unindexSlice(k)
	}
	n.table()[kind].store.remove(k)
	n.generation[kind]++
	return &n
}

// WithNodes returns a Cluster with other Nodes, for who learns of them from elsewhere.
// Who calls it counts their generations, apart from those of a source.
func (c *Cluster) WithNodes(nodes Store[*corev1.Node], generation uint64) *Cluster {
	n := *c
	n.Nodes, n.generation[Node] = nodes, generation
	return &n
}

// WithFaults returns a Cluster whose source has exactly these problems.
func (c *Cluster) WithFaults(faults []Problem) *Cluster {
	n := *c
	n.Faults = faults
	n.generation[Faults]++
	return &n
}

func serviceOf(s *discoveryv1.EndpointSlice) (Key, bool) {
	name := s.Labels[discoveryv1.LabelServiceName]
	return Key{s.Namespace, name}, name != ""
}

func (c *Cluster) indexSlice(s *discoveryv1.EndpointSlice) {
	if service, ok := serviceOf(s); ok {
		list := slices.Clone(c.SlicesOf(service))
		i, _ := slices.BinarySearchFunc(list, s.Name, func(s *discoveryv1.EndpointSlice, name string) int {
			return Key{Name: s.Name}.Compare(Key{Name: name})
		})
		c.slicesOf = c.slicesOf.With(service, slices.Insert(list, i, s))
	}
}

func (c *Cluster) unindexSlice(k Key) {
	old, ok := c.EndpointSlices.Get(k)
	if !ok {
		return
	}
	service, ok := serviceOf(old)
	if !ok {
		return
	}
	rest := slices.DeleteFunc(slices.Clone(c.SlicesOf(service)), func(s *discoveryv1.EndpointSlice) bool {
		return s.Name == old.Name
	})
	if len(rest) == 0 {
		c.slicesOf = c.slicesOf.Without(service)
	} else {
		c.slicesOf = c.slicesOf.With(service, rest)
	}
}

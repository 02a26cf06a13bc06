package route

import (
	"slices"

	"quayside.io/cluster/snapshot"
)

// A draft is a Store in the making. Changes gather in a map, so that a first
// Compile of everything builds each Store once.
type draft[V any] struct {
	base  snapshot.Store[V]
	edits map[snapshot.Key]edit[V]
}

type edit[V any] struct {
	value V
	gone  bool
}

// draftOf returns a draft for about n changes.
func draftOf[V any](s snapshot.Store[V], n int) *draft[V] {
	return &draft[V]{s, make(map[snapshot.Key]edit[V], n)}
}

func (d *draft[V]) get(k snapshot.Key) (V, bool) {
	if e, ok := d.edits[k]; ok {
		return e.value, !e.gone
	}
	return d.base.Get(k)
}

func (d *draft[V]) set(k snapshot.Key, v V) { d.edits[k] = edit[V]{value: v} }

func (d *draft[V]) unset(k snapshot.Key) { d.edits[k] = edit[V]{gone: true} }

// store returns what has become of it.
func (d *draft[V]) store() snapshot.Store[V] {
	if d.base.Len() > 0 {
		s := d.base
		for k, e := range d.edits {
			if e.gone {
				s = s.Without(k)
			} else {
				s = s.With(k, e.value)
			}
		}
		return s
	}
	return snapshot.Collect(len(d.edits), func(yield func(snapshot.Key, V) bool) {
		for k, e := range d.edits {
			if !e.gone && !yield(k, e.value) {
				return
			}
		}
	})
}

// An index says which units depend on something.
type index = snapshot.Store[users]

// users are units, by keyOf. There may be very many of one Service.
type users = snapshot.Store[struct{}]

// reindex moves user from what it depended on to what it depends on now. Where that is
// the same the index is, too: Tables that name the same can be told by it.
func reindex(ix *draft[users], user snapshot.Key, before, after []snapshot.Key) {
	if slices.Equal(before, after) {
		return
	}
	for _, what := range before {
		list, _ := ix.get(what)
		if list = list.Without(user); list.Len() == 0 {
			ix.unset(what)
		} else {
			ix.set(what, list)
		}
	}
	for _, what := range after {
		list, _ := ix.get(what)
		ix.set(what, list.With(user, struct{}{}))
	}
}

package snapshot

import (
	"iter"
	"maps"
	"reflect"
)

// anyStore is a *Store[V] for whoever knows the kind only at run time.
type anyStore interface {
	name() string // of its type, as Kubernetes spells the kind
	make() Object
	holds(Object) bool // its type belongs here
	put(Key, Object)
	putAll([]Object) // of several of one key the last
	remove(Key)
	get(Key) (Object, bool)
	objects() iter.Seq[Object]
}

// Get returns the object of that kind and key.
func (c *Cluster) Get(kind Kind, k Key) (Object, bool) {
	if kind == Faults {
		return nil, false
	}
	return c.table()[kind].store.get(k)
}

// Objects yields every object of a kind in an unspecified but repeatable order.
func (c *Cluster) Objects(kind Kind) iter.Seq[Object] {
	if kind == Faults {
		return func(func(Object) bool) {}
	}
	return c.table()[kind].store.objects()
}

// Kinds yields every kind of object that a Cluster holds; Faults is none.
func Kinds() iter.Seq[Kind] {
	return func(yield func(Kind) bool) {
		for k := range Faults {
			if !yield(k) {
				return
			}
		}
	}
}

func (s *Store[V]) name() string { return reflect.TypeFor[V]().Elem().Name() }

func (s *Store[V]) make() Object {
	return reflect.New(reflect.TypeFor[V]().Elem()).Interface().(Object)
}

func (s *Store[V]) holds(o Object) bool {
	_, ok := any(o).(V)
	return ok
}

func (s *Store[V]) put(k Key, o Object) { *s = s.With(k, any(o).(V)) }

func (s *Store[V]) putAll(objects []Object) {
	if len(objects) < s.Len()/8 { // the others are more than their paths
		for _, o := range objects {
			s.put(KeyOf(o), o)
		}
		return
	}
	all := make(map[Key]V, s.Len()+len(objects))
	for k, v := range s.All() {
		all[k] = v
	}
	for _, o := range objects {
		all[KeyOf(o)] = any(o).(V)
	}
	*s = Collect(len(all), maps.All(all))
}

func (s *Store[V]) remove(k Key) { *s = s.Without(k) }

func (s *Store[V]) get(k Key) (Object, bool) {
	v, ok := s.Get(k)
	if !ok {
		return nil, false // not a V(nil) inside an Object
	}
	return any(v).(Object), true
}

func (s *Store[V]) objects() iter.Seq[Object] {
	return func(yield func(Object) bool) {
		for _, v := range s.All() {
			if !yield(any(v).(Object)) {
				return
			}
		}
	}
}

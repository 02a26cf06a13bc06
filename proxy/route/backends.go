package route

import (
	"slices"
)

// A slot is a backend in use and its index in Table.Backends.
type slot struct {
	backend Backend
	index   int
	refs    int // routes that lead to it
}

// acquire returns the index of b and counts one more route to it. An index that
// was freed is not given to another backend: a request in flight may still hold
// a Route of an older Table. Compile starts afresh when too many are free.
func (w *compiler) acquire(b Backend) int {
	list, _ := w.slots.get(b.Service)
	list = slices.Clone(list)
	i := slices.IndexFunc(list, func(s slot) bool { return s.backend == b })
	if i < 0 {
		i = len(list)
		w.ownBackends()
		list = append(list, slot{backend: b, index: len(w.t.Backends)})
		w.t.Backends = append(w.t.Backends, b)
	}
	list[i].refs++
	w.slots.set(b.Service, list)
	return list[i].index
}

// again counts one more route to the backend at an index, and returns it.
func (w *compiler) again(index int) Backend {
	b := w.t.Backends[index]
	w.acquire(b)
	return b
}

// release takes back one acquire.
func (w *compiler) release(b Backend) {
	list, _ := w.slots.get(b.Service)
	list = slices.Clone(list)
	i := slices.IndexFunc(list, func(s slot) bool { return s.backend == b })
	if list[i].refs--; list[i].refs == 0 {
		w.ownBackends()
		w.t.Backends[list[i].index] = Backend{}
		w.t.state.free++
		list = slices.Delete(list, i, i+1)
	}
	if len(list) == 0 {
		w.slots.unset(b.Service)
		return
	}
	w.slots.set(b.Service, list)
}

// ownBackends makes t.Backends a copy, once: the Table before keeps its own.
func (w *compiler) ownBackends() {
	if !w.ownsList {
		w.t.Backends = slices.Clone(w.t.Backends)
		w.ownsList = true
	}
}

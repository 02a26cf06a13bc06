package route

import (
	"slices"
)

// A slot is a backend in use: its index in Table.Backends. Backends are large, so
// nothing but that list holds them.
type slot struct {
	index int
	refs  int // routes that lead to it
}

// acquire returns the index of b and counts one more route to it. An index that
// was freed is not given to another backend: a request in flight may still hold
// a Route of an older Table. Compile starts afresh when too many are free.
func (w *compiler) acquire(b Backend) int {
	list, _ := w.slots.get(b.Service)
	list = slices.Clone(list)
	i := slices.IndexFunc(list, func(s slot) bool { return w.t.Backends[s.index] == b })
	if i < 0 {
		i = len(list)
		w.ownBackends()
		list = append(list, slot{index: len(w.t.Backends)})
		w.t.Backends = append(w.t.Backends, b)
	}
	list[i].refs++
	w.slots.set(b.Service, list)
	return list[i].index
}

// release takes back one acquire.
func (w *compiler) release(index int) {
	service := w.t.Backends[index].Service
	list, _ := w.slots.get(service)
	list = slices.Clone(list)
	i := slices.IndexFunc(list, func(s slot) bool { return s.index == index })
	if list[i].refs--; list[i].refs == 0 {
		w.ownBackends()
		w.t.Backends[index] = Backend{}
		w.t.state.free++
		list = slices.Delete(list, i, i+1)
	}
	if len(list) == 0 {
		w.slots.unset(service)
		return
	}
	w.slots.set(service, list)
}

// ownBackends makes t.Backends a copy, once: the Table before keeps its own. It has
// room for one more of each changed object, and not for more than there are Services.
func (w *compiler) ownBackends() {
	if !w.ownsList {
		n := len(w.t.Backends)
		w.t.Backends = append(make([]Backend, 0, n+min(w.changed, w.c.Services.Len())), w.t.Backends...)
		w.ownsList = true
	}
}

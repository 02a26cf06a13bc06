package cluster

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"quayside.io/cluster/snapshot"
)

// feed passes what a reflector hears on to the loop. It is the reflector's
// store, without storing anything a second time.
//
// The scopes of a group may have been in others before. Of these all is known up to the
// version at which their watches ended, and from there the new one goes on: only what is
// fresh is listed. So a Service that comes costs a list of its own EndpointSlices, and one
// that goes none, however many share their watch.
type feed struct {
	source  *Source
	group   *group
	resumes bool // this is the first life of what begins where others ended
	stream  stream

	// version is up to which all of the scopes has been told but of those that are fresh;
	// "": of none. They may be read once the reflector has ended.
	version string
	fresh   map[scope]bool

	// The rest is of the last list: of what it was, and when; "": as the reflector says.
	// Only the first may be of less than all, and that is tried once.
	tried bool
	of    *group
	at    string
}

var (
	_ cache.TransformingStore      = (*feed)(nil)
	_ cache.ResourceVersionUpdater = (*feed)(nil)
)

// newFeed is one of a group. Of some of its scopes others have told up to a version.
func newFeed(source *Source, g *group, told map[scope]string) *feed {
	f := &feed{source: source, group: g, of: g, fresh: map[scope]bool{}}
	for _, s := range g.scopes {
		version, known := told[s]
		switch {
		case !known:
			f.fresh[s] = true
		case f.version == "" || newer(f.version, version):
			f.version = version
		}
	}
	f.resumes = f.version != ""
	return f
}

// told adds up to which version all of each scope has been told, of those that have been.
func (f *feed) told(versions map[scope]string) {
	for _, s := range f.group.scopes {
		if f.version != "" && !f.fresh[s] {
			versions[s] = f.version
		}
	}
}

// list asks for the objects of a group, which is all or, at first, what is fresh. The
// watch goes on from the version of what it returns.
func (f *feed) list(o *metav1.ListOptions, r snapshot.Resource, ask func(of *group, into runtime.Object) error) (runtime.Object, error) {
	list := r.NewList()
	f.of, f.at = f.group, ""
	if f.resumes && o.ResourceVersion == "0" { // any; but it must not be older than what is known
		o.ResourceVersion, o.ResourceVersionMatch, o.Limit = f.version, metav1.ResourceVersionMatchNotOlderThan, 0
	}
	if !f.resumes || f.tried {
		return list, ask(f.of, list)
	}
	f.tried = true
	head, err := meta.ListAccessor(list)
	if err != nil {
		return nil, err
	}
	var fresh []scope
	for _, s := range f.group.scopes {
		if f.fresh[s] {
			fresh = append(fresh, s)
		}
	}
	f.of = newGroup(f.group.kind, f.group.namespace, fresh)
	if len(fresh) > 0 {
		if err := ask(f.of, list); err != nil {
			return nil, err
		}
		f.at = head.GetResourceVersion()
	}
	head.SetResourceVersion(f.version)
	return list, nil
}

// UpdateResourceVersion implements cache.ResourceVersionUpdater: all up to there is told.
func (f *feed) UpdateResourceVersion(version string) { f.version = version }

// Add implements cache.ReflectorStore.
func (f *feed) Add(obj any) error {
	o, ok := obj.(snapshot.Object)
	switch {
	case !ok:
	case f.group.covers(placeOf(o)):
		strip(o)
		f.source.note(f.group.kind == snapshot.EndpointSlice, func(l *ledger) { l.put(o) })
	default: // the Service that it is of now has the name of one in another namespace
		f.left(o)
	}
	return nil
}

// Update implements cache.ReflectorStore.
func (f *feed) Update(obj any) error { return f.Add(obj) }

// Delete implements cache.ReflectorStore.
func (f *feed) Delete(obj any) error {
	if o, ok := obj.(snapshot.Object); ok {
		f.left(o)
	}
	return nil
}

// left notes that o is not in the group any more, if it was.
func (f *feed) left(o snapshot.Object) {
	f.source.note(f.group.kind == snapshot.EndpointSlice, func(l *ledger) {
		key := snapshot.KeyOf(o)
		have, ok := l.cluster.Get(f.group.kind, key)
		if ok && !f.group.covers(placeOf(have)) || !ok && !f.group.covers(placeOf(o)) {
			return // it has only left this group, or never was in it
		}
		l.remove(f.group.kind, key, o.GetResourceVersion())
	})
}

// Replace implements cache.ReflectorStore.
func (f *feed) Replace(list []any, version string) error {
	objects := make([]snapshot.Object, 0, len(list))
	for _, obj := range list {
		if o, ok := obj.(snapshot.Object); ok && f.of.covers(placeOf(o)) {
			objects = append(objects, strip(o))
		}
	}
	f.version = version
	f.stream.ended()
	clear(f.fresh)
	of, at := f.of, cmp.Or(f.at, version)
	f.source.note(true, func(l *ledger) { l.replace(of, objects, at) })
	return nil
}

// Resync implements cache.ReflectorStore.
func (f *feed) Resync() error { return nil }

// Transformer implements cache.TransformingStore: a reflector that streams its
// first list keeps it for a while.
func (f *feed) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		if o, ok := obj.(snapshot.Object); ok {
			return strip(o), nil
		}
		return obj, nil
	}
}

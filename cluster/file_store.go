package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/snapshot"
)

// duplicate is the reason of the Problem that two files hold one object.
const duplicate = "Duplicate"

// fileStore plays the API server for manifest files: it gives objects versions,
// identities and ages, and keeps what was written into them apart from what
// the files say, so that a file that is read again does not undo a status.
//
// It looks at the origins that changed only, and holds each object once: what a
// file says is stamped in place before anybody sees it, and copied where it is
// no longer what the file says.
type fileStore struct {
	entries    map[snapshot.Kind]map[snapshot.Key]*entry
	namespaces map[string]int // how many objects are in each
	contested  map[id]*entry  // objects that several origins have
	made       *origin        // what the files lack
	version    int            // the last resourceVersion given
	born       int            // counts objects, so that "oldest" means first in the files
	round      int            // counts origins that were looked at
}

// origin is a file, as it was last read without a fault. Earlier ones win.
type origin struct {
	group   int
	name    string // empty: what the program puts, or what is made
	objects []snapshot.Object
	taken   []snapshot.Object // objects, as the store last took them
}

func (o *origin) compare(other *origin) int {
	return cmp.Or(cmp.Compare(o.group, other.group), cmp.Compare(o.name, other.name))
}

// definition is an object as an origin has it.
type definition struct {
	origin *origin
	text   snapshot.Object
}

// touched is an object with a changed definition.
type touched struct {
	at id
	*entry
}

// changes are what followers of the store must know.
type changes struct {
	put  []snapshot.Object
	gone map[id]string // with the version at which it went
}

func newFileStore() *fileStore {
	return &fileStore{
		entries:    map[snapshot.Kind]map[snapshot.Key]*entry{},
		namespaces: map[string]int{},
		contested:  map[id]*entry{},
		made:       &origin{group: math.MaxInt},
	}
}

// arrange takes in what the changed origins say now.
func (s *fileStore) arrange(changed []*origin, synthesize func(*fileStore) []snapshot.Object) changes {
	slices.SortFunc(changed, (*origin).compare) // objects get their ages in this order
	var all []touched
	for _, o := range changed {
		all = s.take(o, all)
	}
	return s.finish(all, synthesize)
}

// put takes in objects that an origin has as well, or otherwise than before. It looks at
// no other, so that one object costs the same whatever the origin has. The last of several
// versions counts.
func (s *fileStore) put(o *origin, objects []snapshot.Object, synthesize func(*fileStore) []snapshot.Object) changes {
	var all []touched
	for _, text := range objects {
		kind, _ := snapshot.KindOf(text)
		at := id{kind, snapshot.KeyOf(text)}
		e := s.entry(at)
		s.changeDefinitions(at, e, func() { e.add(definition{o, text}) })
		all = append(all, touched{at, e})
	}
	return s.finish(all, synthesize)
}

// drop takes away an object that was put.
func (s *fileStore) drop(o *origin, at id, synthesize func(*fileStore) []snapshot.Object) changes {
	e := s.get(at)
	if e == nil {
		return changes{}
	}
	s.changeDefinitions(at, e, func() { e.remove(o) })
	return s.finish([]touched{{at, e}}, synthesize)
}

// finish makes what is lacking now, and settles what was touched.
func (s *fileStore) finish(all []touched, synthesize func(*fileStore) []snapshot.Object) changes {
	s.made.objects = synthesize(s)
	all = s.take(s.made, all)
	news := changes{gone: map[id]string{}}
	for _, t := range all {
		if t.definition.origin != nil {
			if o := s.settle(t); o != nil {
				news.put = append(news.put, o)
			}
		} else if s.get(t.at) == t.entry {
			delete(s.entries[t.at.kind], t.at.key)
			news.gone[t.at] = s.next()
		}
	}
	return news
}

// take replaces the definitions of o by those that it has now, and adds the objects that
// they are of to all.
func (s *fileStore) take(o *origin, all []touched) []touched {
	s.round++
	for _, text := range o.objects {
		kind, _ := snapshot.KindOf(text)
		at := id{kind, snapshot.KeyOf(text)}
		e := s.entry(at)
		if e.round == s.round {
			continue // twice in one file: the first counts
		}
		e.round = s.round
		s.changeDefinitions(at, e, func() { e.add(definition{o, text}) })
		all = append(all, touched{at, e})
	}
	for _, text := range o.taken {
		kind, _ := snapshot.KindOf(text)
		at := id{kind, snapshot.KeyOf(text)}
		if e := s.get(at); e != nil && e.round != s.round {
			e.round = s.round
			s.changeDefinitions(at, e, func() { e.remove(o) })
			all = append(all, touched{at, e})
		}
	}
	o.taken = o.objects
	return all
}

// changeDefinitions calls change, which changes the definitions of e, and updates the
// counts that depend on them.
func (s *fileStore) changeDefinitions(at id, e *entry, change func()) {
	was := e.definition.origin != nil
	change()
	if is := e.definition.origin != nil; is && !was {
		s.namespaces[at.key.Namespace]++
	} else if was && !is {
		if s.namespaces[at.key.Namespace]--; s.namespaces[at.key.Namespace] == 0 {
			delete(s.namespaces, at.key.Namespace)
		}
	}
	if len(e.others) > 0 {
		s.contested[at] = e
	} else {
		delete(s.contested, at)
	}
}

// entry returns the entry of an object, a new one if there is none.
func (s *fileStore) entry(at id) *entry {
	of := s.entries[at.kind]
	if of == nil {
		of = map[snapshot.Key]*entry{}
		s.entries[at.kind] = of
	}
	e := of[at.key]
	if e == nil {
		e = &entry{}
		of[at.key] = e
	}
	return e
}

// get returns the entry of an object, or nil.
func (s *fileStore) get(at id) *entry { return s.entries[at.kind][at.key] }

// isGiven reports whether an origin has the object, so that it need not be made.
func (s *fileStore) isGiven(at id) bool {
	e := s.get(at)
	return e != nil && e.definition.origin != nil && e.definition.origin != s.made
}

// given reports whether any object of a kind need not be made.
func (s *fileStore) given(kind snapshot.Kind) bool {
	for key := range s.entries[kind] {
		if s.isGiven(id{kind, key}) {
			return true
		}
	}
	return false
}

// duplicates are the problems of objects that several files have.
func (s *fileStore) duplicates() []snapshot.Problem {
	var problems []snapshot.Problem
	for at, e := range s.contested {
		counts := e.definition.origin.name
		for _, c := range e.others {
			if name := c.origin.name; counts != "" && name != "" && name != counts {
				problems = append(problems, snapshot.Problem{
					Object: snapshot.Ref{Kind: "File", Key: snapshot.Key{Name: name}}, Reason: duplicate,
					Message: fmt.Sprintf("%s is also in %s, which counts; remove one of them", snapshot.Ref{Kind: at.kind.String(), Key: at.key}, counts)})
			}
		}
	}
	slices.SortFunc(problems, snapshot.Problem.Compare)
	return problems
}

// settle makes an object what its first origin says and returns it as everyone sees
// it from now on, or nil if that is nothing new.
func (s *fileStore) settle(t touched) snapshot.Object {
	text := t.definition.text
	if t.text == text {
		return nil // the very same of all but what was read again
	}
	if text.GetResourceVersion() != "" {
		text = shallowCopy(text) // it was seen before, and then something else came first
	}
	if t.text == nil {
		s.born++
		stamp(text, uidOf(t.at), metav1.NewTime(time.Date(2000, 1, 1, 0, 0, s.born, 0, time.UTC)))
	} else {
		stamp(text, t.object.GetUID(), t.object.GetCreationTimestamp())
		if text.SetResourceVersion(t.text.GetResourceVersion()); isSame(t.text, text) {
			return nil
		}
	}
	object := text
	if t.text != t.object {
		object = t.carryOver(text)
	}
	version := s.next()
	text.SetResourceVersion(version)
	object.SetResourceVersion(version)
	t.entry.text, t.entry.object = text, object
	return object
}

// write enters a status as UpdateStatus promises it.
func (s *fileStore) write(at id, wanted snapshot.Object) (snapshot.Object, error) {
	e := s.get(at)
	switch {
	case e == nil:
		return nil, stale(wanted, "it is gone")
	case e.object.GetResourceVersion() != wanted.GetResourceVersion():
		return nil, stale(wanted, "there is a newer version")
	}
	o := shallowCopy(e.object)
	setStatus(o, wanted)
	if at.kind == snapshot.Service {
		o.SetAnnotations(mergeOwn(o.GetAnnotations(), wanted.GetAnnotations()))
		e.remember(o.GetAnnotations())
	}
	if isSame(o, e.object) {
		return o, nil // as the API server does: no new version for no change
	}
	o.SetResourceVersion(s.next())
	e.object = o
	return o, nil
}

func (s *fileStore) next() string {
	s.version++
	return strconv.Itoa(s.version)
}

// namespaceNames are the namespaces that objects are in, and the default one.
func (s *fileStore) namespaceNames() []string {
	names := maps.Clone(s.namespaces)
	names[metav1.NamespaceDefault]++
	delete(names, "") // of what is in none
	return slices.Sorted(maps.Keys(names))
}

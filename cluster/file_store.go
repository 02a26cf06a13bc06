package cluster

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quayside.io/cluster/manifest"
	"quayside.io/cluster/snapshot"
)

// duplicate is the reason of the Problem that two files hold one object.
const duplicate = "Duplicate"

// fileStore plays the API server for manifest files: it gives objects versions,
// identities and ages, and keeps what was written into them apart from what
// the files say, so that a file that is read again does not undo a status.
type fileStore struct {
	entries map[id]*entry
	version int // the last resourceVersion given
	born    int // counts objects, so that "oldest" means first in the files
}

// entry is one object of the store.
type entry struct {
	text    snapshot.Object    // as the file has it
	object  snapshot.Object    // as everyone sees it
	written map[string]*string // annotations written by us; nil: removed
}

// origin is a file, as it was last read without a fault.
type origin struct {
	name    string
	objects []snapshot.Object
}

// arrange makes the store hold what origins say, earlier ones first, and
// returns the changes and the objects that are there twice.
func (s *fileStore) arrange(origins []origin, synthesize func(present map[id]bool) []snapshot.Object) (put []snapshot.Object, gone map[id]string, problems []snapshot.Problem) {
	from := map[id]string{}
	present := map[id]bool{}
	take := func(name string, o snapshot.Object) {
		kind, _ := snapshot.KindOf(o)
		at := id{kind, snapshot.KeyOf(o)}
		if present[at] {
			if from[at] != "" && name != from[at] {
				problems = append(problems, snapshot.Problem{
					Object: snapshot.Ref{Kind: "File", Key: snapshot.Key{Name: name}}, Reason: duplicate,
					Message: fmt.Sprintf("%s is also in %s, which counts; remove one of them", snapshot.RefOf(o), from[at])})
			}
			return
		}
		present[at], from[at] = true, name
		if o = s.put(at, o); o != nil {
			put = append(put, o)
		}
	}
	for _, origin := range origins {
		for _, o := range origin.objects {
			take(origin.name, o)
		}
	}
	for _, o := range synthesize(present) {
		take("", o)
	}
	gone = map[id]string{}
	for at := range s.entries {
		if !present[at] {
			delete(s.entries, at)
			gone[at] = s.next()
		}
	}
	return put, gone, problems
}

// put enters what a file says of an object and returns the object as
// everyone sees it from now on, or nil if that is nothing new.
func (s *fileStore) put(at id, text snapshot.Object) snapshot.Object {
	e := s.entries[at]
	if e != nil && (e.text == text || equality.Semantic.DeepEqual(e.text, text)) {
		return nil // the very same of all but what was read again
	}
	o := text.DeepCopyObject().(snapshot.Object)
	if e == nil {
		s.born++
		if o.GetUID() == "" {
			o.SetUID(uidOf(at))
		}
		if stamp := o.GetCreationTimestamp(); stamp.IsZero() {
			o.SetCreationTimestamp(metav1.NewTime(time.Date(2000, 1, 1, 0, 0, s.born, 0, time.UTC)))
		}
		e = &entry{written: map[string]*string{}}
		s.entries[at] = e
	} else {
		s.carryOver(e, text, o)
	}
	o.SetResourceVersion(s.next())
	e.text, e.object = text, o
	return o
}

// carryOver keeps in o what does not come from the file: its identity and what
// was written. A status counts as the file's if the file changed it.
func (s *fileStore) carryOver(e *entry, text, o snapshot.Object) {
	if o.GetUID() == "" {
		o.SetUID(e.object.GetUID())
	}
	if stamp := o.GetCreationTimestamp(); stamp.IsZero() {
		o.SetCreationTimestamp(e.object.GetCreationTimestamp())
	}
	if equality.Semantic.DeepEqual(statusOf(e.text), statusOf(text)) {
		setStatus(o, e.object)
	}
	annotations := o.GetAnnotations()
	for k, v := range e.written {
		if v == nil {
			delete(annotations, k)
			continue
		}
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[k] = *v
	}
	o.SetAnnotations(annotations)
}

// write enters a status as UpdateStatus promises it.
func (s *fileStore) write(at id, wanted snapshot.Object) (snapshot.Object, error) {
	e := s.entries[at]
	switch {
	case e == nil:
		return nil, stale(wanted, "it is gone")
	case e.object.GetResourceVersion() != wanted.GetResourceVersion():
		return nil, stale(wanted, "there is a newer version")
	}
	o := e.object.DeepCopyObject().(snapshot.Object)
	setStatus(o, wanted)
	if at.kind == snapshot.Service {
		o.SetAnnotations(mergeOwn(o.GetAnnotations(), wanted.GetAnnotations()))
		e.remember(o.GetAnnotations())
	}
	if equality.Semantic.DeepEqual(o, e.object) {
		return o, nil // as the API server does: no new version for no change
	}
	o.SetResourceVersion(s.next())
	e.object = o
	return o, nil
}

// remember notes in which of our annotations the object now differs from its file.
func (e *entry) remember(now map[string]string) {
	text := e.text.GetAnnotations()
	clear(e.written)
	for k, v := range now {
		if was, ok := text[k]; isOwn(k) && (!ok || was != v) {
			e.written[k] = &v
		}
	}
	for k := range text {
		if _, ok := now[k]; isOwn(k) && !ok {
			e.written[k] = nil
		}
	}
}

func (s *fileStore) next() string {
	s.version++
	return strconv.Itoa(s.version)
}

// mergeOwn returns base with our annotations as in wanted.
func mergeOwn(base, wanted map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range base {
		if !isOwn(k) {
			out[k] = v
		}
	}
	for k, v := range wanted {
		if isOwn(k) {
			out[k] = v
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// uidOf derives a UID from the name, so that a restart changes nothing.
func uidOf(at id) types.UID {
	h := sha256.Sum256([]byte(at.kind.String() + " " + at.key.String()))
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", h[:4], h[4:6], h[6:8], h[8:10], h[10:16]))
}

// faultsOf turns a reading into faults: errors keep the file's last good version
// in force, notes do not.
func faultsOf(r manifest.Result, keepsOld bool) []snapshot.Problem {
	faults := make([]snapshot.Problem, 0, len(r.Errors)+len(r.Notes))
	for _, p := range r.Errors {
		if keepsOld {
			p.Message += keepsGood
		}
		faults = append(faults, p)
	}
	return append(faults, r.Notes...)
}

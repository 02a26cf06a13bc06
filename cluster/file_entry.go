package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quayside.io/cluster/snapshot"
)

// entry is one object of a fileStore.
type entry struct {
	definition                    // the one that counts; its origin is nil if there is none
	others     []definition       // of later origins, in their order
	round      int                // the origin that was last looked at for it
	text       snapshot.Object    // as the file had it when it was settled, and stamped
	object     snapshot.Object    // as everyone sees it: text, but for what was written
	written    map[string]*string // annotations written by us; nil: removed
}

// add adds the definition of an origin, in place of its former one.
func (e *entry) add(c definition) {
	switch {
	case e.definition.origin == nil, e.definition.origin == c.origin:
		e.definition = c
		return
	case c.origin.compare(e.definition.origin) < 0:
		e.definition, c = c, e.definition
	}
	i, found := slices.BinarySearchFunc(e.others, c.origin, func(a definition, o *origin) int { return a.origin.compare(o) })
	if found {
		e.others[i] = c
	} else {
		e.others = slices.Insert(e.others, i, c)
	}
}

// remove removes the definition of an origin.
func (e *entry) remove(o *origin) {
	if e.definition.origin != o {
		e.others = slices.DeleteFunc(e.others, func(c definition) bool { return c.origin == o })
		return
	}
	e.definition = definition{}
	if len(e.others) > 0 {
		e.definition = e.others[0]
		e.others = slices.Delete(e.others, 0, 1)
	}
}

// carryOver returns text with what was written into its former version. A status
// counts as the file's if the file changed it.
func (e *entry) carryOver(text snapshot.Object) snapshot.Object {
	o := shallowCopy(text)
	if isSame(statusOf(e.text), statusOf(text)) {
		setStatus(o, e.object)
	}
	if len(e.written) == 0 {
		return o
	}
	annotations := maps.Clone(o.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	for k, v := range e.written {
		if v == nil {
			delete(annotations, k)
		} else {
			annotations[k] = *v
		}
	}
	o.SetAnnotations(annotations)
	return o
}

// remember notes in which of our annotations the object now differs from its file.
func (e *entry) remember(now map[string]string) {
	text := e.text.GetAnnotations()
	e.written = map[string]*string{}
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

// stamp gives an object the identity and age that it lacks.
func stamp(o snapshot.Object, uid types.UID, created metav1.Time) {
	if o.GetUID() == "" {
		o.SetUID(uid)
	}
	if at := o.GetCreationTimestamp(); at.IsZero() {
		o.SetCreationTimestamp(created)
	}
}

// uidOf derives a UID from the name, so that a restart changes nothing.
func uidOf(at id) types.UID {
	h := sha256.Sum256([]byte(at.kind.String() + " " + at.key.String()))
	text := hex.AppendEncode(make([]byte, 0, 36), h[:4])
	for _, part := range [][]byte{h[4:6], h[6:8], h[8:10], h[10:16]} {
		text = hex.AppendEncode(append(text, '-'), part)
	}
	return types.UID(text)
}

func isSame(a, b any) bool { return equality.Semantic.DeepEqual(a, b) }

// shallowCopy returns an object whose own fields can be set without a change of o. What
// they lead to is shared.
func shallowCopy(o snapshot.Object) snapshot.Object {
	c := reflect.New(reflect.TypeOf(o).Elem())
	c.Elem().Set(reflect.ValueOf(o).Elem())
	return c.Interface().(snapshot.Object)
}

package cluster

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"quayside.io/cluster/manifest"
	"quayside.io/cluster/snapshot"
)

// fileTwin reads everything again at each look, and asks of each object who is the
// first to have it.
type fileTwin struct {
	paths  []string
	texts  map[string]string            // as last read
	good   map[string][]snapshot.Object // by file
	faults map[string][]snapshot.Problem
	status map[id]string          // written since the object came
	put    map[id]snapshot.Object // by the program, which wins
}

func (w *fileTwin) look() (objects map[id]snapshot.Object, faults []snapshot.Problem) {
	var names []string
	for _, p := range w.paths {
		in, _ := list(p) // each can be read
		names = append(names, in...)
	}
	for name := range w.texts {
		if !slices.Contains(names, name) {
			delete(w.texts, name)
			delete(w.good, name)
		}
	}
	objects, from := map[id]snapshot.Object{}, map[id]string{}
	for at, o := range w.put {
		objects[at], from[at] = o, ""
	}
	for _, name := range names {
		w.read(name)
		faults = append(faults, w.faults[name]...)
		twice := map[id]bool{}
		for _, o := range w.good[name] {
			kind, _ := snapshot.KindOf(o)
			at := id{kind, snapshot.KeyOf(o)}
			if first, taken := from[at]; !taken {
				objects[at], from[at] = o, name
			} else if first != "" && first != name && !twice[at] {
				faults = append(faults, snapshot.Problem{Object: snapshot.Ref{Kind: "File", Key: snapshot.Key{Name: name}}, Reason: duplicate,
					Message: fmt.Sprintf("%s is also in %s, which counts; remove one of them", snapshot.RefOf(o), first)})
			}
			twice[at] = true
		}
	}
	maps.DeleteFunc(w.status, func(at id, _ string) bool { return objects[at] == nil })
	slices.SortFunc(faults, snapshot.Problem.Compare)
	return objects, faults
}

func (w *fileTwin) read(name string) {
	text, err := os.ReadFile(name)
	if err != nil {
		panic(err)
	}
	if was, ok := w.texts[name]; ok && was == string(text) {
		return // what is wrong with it was judged beside what it held then
	}
	w.texts[name] = string(text)
	r := manifest.Decode(name, text)
	w.faults[name] = faultsOf(r, len(r.Errors) > 0 && len(w.good[name]) > 0)
	if len(r.Errors) == 0 || len(w.good[name]) == 0 {
		w.good[name] = r.Objects
	}
}

// shown is an object without what a server gives it.
func shown(o snapshot.Object, status string) string {
	o = o.DeepCopyObject().(snapshot.Object)
	o.SetUID("")
	o.SetResourceVersion("")
	o.SetCreationTimestamp(metav1.Time{})
	if s, ok := o.(*corev1.Service); ok && status != "" {
		s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: status}}
	}
	return fmt.Sprintf("%+v", o)
}

func drawManifest(t *rapid.T) string {
	documents := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
		name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")
		switch rapid.IntRange(0, 9).Draw(t, "what") {
		case 0:
			return "kind: [\n"
		case 1:
			return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n"
		case 2:
			return "# nothing\n"
		case 3:
			return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: other, managedFields: []}\ndata: {é: x}\n", name)
		}
		return fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: %s}\nspec: {ports: [{port: %d}]}\n", name, rapid.IntRange(1, 3).Draw(t, "port"))
	}), 0, 4).Draw(t, "documents")
	return strings.Join(documents, "---\n")
}

// What is read of the files that changed, and of their documents that changed, is
// what is read of all, whatever happens to the files; and nothing that was shown
// ever changes.
func TestFilesAreReadAsAWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "twin")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		paths := rapid.SampledFrom([][]string{{dir}, {filepath.Join(dir, "b.yaml"), dir}}).Draw(t, "paths")
		cache, store := newFileCache(paths), newFileStore()
		twin := &fileTwin{paths: paths, texts: map[string]string{}, good: map[string][]snapshot.Object{}, faults: map[string][]snapshot.Problem{}, status: map[id]string{}, put: map[id]snapshot.Object{}}
		program := &origin{group: math.MinInt}
		have, copies := map[id]snapshot.Object{}, map[snapshot.Object]snapshot.Object{}
		now := time.Now()
		for range rapid.IntRange(1, 6).Draw(t, "looks") {
			for range rapid.IntRange(1, 2).Draw(t, "edits") {
				editFiles(t, dir)
			}
			for range 2 { // what is empty or gone is believed at the second look
				now = now.Add(recheck)
				origins, _, _ := cache.scan(now)
				note(store.arrange(origins, nothing), have, copies)
			}
			compareFiles(t, twin, have, append(cache.faults(), store.duplicates()...))
			note(putByProgram(t, store, program, twin), have, copies)
			compareFiles(t, twin, have, append(cache.faults(), store.duplicates()...))
			writeStatus(t, store, twin, have, copies)
		}
		for o, was := range copies {
			if d := cmp.Diff(was, o); d != "" {
				t.Fatalf("what was shown has changed: -was +is\n%s", d)
			}
		}
	})
}

// nothing is what files lack.
func nothing(*fileStore) []snapshot.Object { return nil }

// note enters news as everyone sees them.
func note(news changes, have map[id]snapshot.Object, copies map[snapshot.Object]snapshot.Object) {
	for at := range news.gone {
		delete(have, at)
	}
	for _, o := range news.put {
		kind, _ := snapshot.KindOf(o)
		have[id{kind, snapshot.KeyOf(o)}] = o
		copies[o] = o.DeepCopyObject().(snapshot.Object)
	}
}

// putByProgram puts some objects, perhaps one of them twice, or takes one away.
func putByProgram(t *rapid.T, store *fileStore, program *origin, twin *fileTwin) changes {
	names := rapid.SampledFrom([]string{"a", "b", "c"})
	if rapid.Bool().Draw(t, "take away") {
		at := id{snapshot.Service, snapshot.Key{Namespace: "default", Name: names.Draw(t, "taken away")}}
		delete(twin.put, at)
		return store.drop(program, at, nothing)
	}
	var objects []snapshot.Object
	for range rapid.IntRange(0, 3).Draw(t, "put") {
		name, port := names.Draw(t, "name"), rapid.Int32Range(1, 3).Draw(t, "port")
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: port}}}}
		objects = append(objects, s)
		twin.put[id{snapshot.Service, snapshot.KeyOf(s)}] = s.DeepCopy()
	}
	return store.put(program, objects, nothing)
}

func editFiles(t *rapid.T, dir string) {
	file := func(label string) string {
		return filepath.Join(dir, rapid.SampledFrom([]string{"a.yaml", "b.yaml", "c.yaml"}).Draw(t, label))
	}
	switch name := file("file"); rapid.IntRange(0, 5).Draw(t, "edit") {
	case 0:
		if filepath.Base(name) != "b.yaml" { // that may be asked for by name, and then it stays
			_ = os.Remove(name)
		}
	case 1:
		if to := file("to"); filepath.Base(name) != "b.yaml" {
			_ = os.Rename(name, to) // it may not be there
		}
	default:
		if err := os.WriteFile(name, []byte(drawManifest(t)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func compareFiles(t *rapid.T, twin *fileTwin, have map[id]snapshot.Object, faults []snapshot.Problem) {
	wantObjects, wantFaults := twin.look()
	want, got := map[string]string{}, map[string]string{}
	for at, o := range wantObjects {
		want[snapshot.RefOf(o).String()] = shown(o, twin.status[at])
	}
	for _, o := range have {
		got[snapshot.RefOf(o).String()] = shown(o, "")
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("objects: -twin +incremental\n%s", d)
	}
	slices.SortFunc(faults, snapshot.Problem.Compare)
	if d := cmp.Diff(snapshot.Distinct(wantFaults), snapshot.Distinct(faults)); d != "" {
		t.Fatalf("faults: -twin +incremental\n%s", d)
	}
}

// writeStatus writes a status into one of the Services, or none.
func writeStatus(t *rapid.T, store *fileStore, twin *fileTwin, have map[id]snapshot.Object, copies map[snapshot.Object]snapshot.Object) {
	at := id{snapshot.Service, snapshot.Key{Namespace: "default", Name: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "written")}}
	s, ok := have[at].(*corev1.Service)
	if !ok {
		return
	}
	ip := rapid.SampledFrom([]string{"192.0.2.1", "192.0.2.2"}).Draw(t, "ip")
	wanted := s.DeepCopy()
	wanted.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: ip}}
	o, err := store.write(at, wanted)
	if err != nil {
		t.Fatal(err)
	}
	twin.status[at], have[at], copies[o] = ip, o, o.DeepCopyObject().(snapshot.Object)
}

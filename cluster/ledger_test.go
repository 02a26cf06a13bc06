package cluster

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"quayside.io/cluster/snapshot"
)

func service(name, version string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, ResourceVersion: version}}
}

func versionOf(l *ledger, name string) string {
	s, ok := l.cluster.Services.Get(snapshot.Key{Namespace: "ns", Name: name})
	if !ok {
		return ""
	}
	return s.ResourceVersion
}

func TestALateWriteDoesNotResurrect(t *testing.T) {
	l := newLedger(nil)
	key := snapshot.Key{Namespace: "ns", Name: "a"}
	l.put(service("a", "5"))
	l.remove(snapshot.Service, key, "8")
	l.put(service("a", "7")) // the answer to a write sent before the deletion
	if v := versionOf(l, "a"); v != "" {
		t.Fatalf("deleted at 8, yet version %s is there", v)
	}
	l.put(service("a", "9"))
	if v := versionOf(l, "a"); v != "9" {
		t.Fatalf("made anew at 9, have %q", v)
	}
	l.remove(snapshot.Service, key, "8") // the watch is late
	if v := versionOf(l, "a"); v != "9" {
		t.Fatalf("a late deletion took the new object away: %q", v)
	}
}

func TestTombstonesAreForgotten(t *testing.T) {
	now := time.Unix(1000, 0)
	l := newLedger(nil)
	l.now = func() time.Time { return now }
	l.remove(snapshot.Service, snapshot.Key{Name: "a"}, "1")
	l.sweep()
	if len(l.tombstones) != 1 {
		t.Fatalf("a fresh tombstone is gone")
	}
	now = now.Add(2 * tombstoneTime)
	l.sweep()
	if len(l.tombstones) != 0 {
		t.Fatalf("%d tombstones after %v", len(l.tombstones), 2*tombstoneTime)
	}
}

func TestRelistFindsMissedDeletionsAndKeepsNewerWrites(t *testing.T) {
	l := newLedger([]snapshot.Kind{snapshot.Service})
	l.replace(groupOf(scope{kind: snapshot.Service}), []snapshot.Object{service("a", "1"), service("b", "2"), service("c", "3")}, "4")
	if len(l.waiting) != 0 {
		t.Fatal("a full list did not settle the kind")
	}
	l.put(service("c", "9")) // written by us, after the list below was read
	before := l.cluster
	l.replace(groupOf(scope{kind: snapshot.Service}), []snapshot.Object{service("a", "1")}, "8")
	if versionOf(l, "a") != "1" || versionOf(l, "b") != "" || versionOf(l, "c") != "9" {
		t.Fatalf("a=%q b=%q c=%q", versionOf(l, "a"), versionOf(l, "b"), versionOf(l, "c"))
	}
	if !l.cluster.Changed(before, snapshot.Service) {
		t.Fatal("a deletion was not counted")
	}
	before = l.cluster
	l.replace(groupOf(scope{kind: snapshot.Service}), []snapshot.Object{service("a", "1"), service("c", "9")}, "10")
	if l.cluster.Changed(before, snapshot.Service) {
		t.Fatal("a list that brought no news counts as a change")
	}
}

func TestHeartbeatsOfNodesAreNoNews(t *testing.T) {
	node := func(version string, ready corev1.ConditionStatus) *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: version},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}},
		}
	}
	l := newLedger(nil)
	l.put(node("1", corev1.ConditionTrue))
	before := l.cluster
	l.put(node("2", corev1.ConditionTrue))
	if l.cluster != before {
		t.Error("a Node that differs in its version only woke everybody")
	}
	l.put(node("3", corev1.ConditionFalse))
	if !l.cluster.Changed(before, snapshot.Node) {
		t.Error("a Node that became NotReady went unnoticed")
	}
}

func TestFaultsByReporter(t *testing.T) {
	problem := func(name string) snapshot.Problem {
		return snapshot.Problem{Object: snapshot.Ref{Kind: "File", Key: snapshot.Key{Name: name}}, Reason: "Unreadable", Message: "no"}
	}
	l := newLedger(nil)
	l.fault("b", []snapshot.Problem{problem("b")})
	l.fault("a", []snapshot.Problem{problem("a")})
	if f := l.cluster.Faults; len(f) != 2 || f[0] != problem("a") {
		t.Fatalf("faults %v", f)
	}
	before := l.cluster
	l.fault("a", []snapshot.Problem{problem("a")})
	if l.cluster != before {
		t.Error("the same fault told twice is a change")
	}
	l.fault("b", nil)
	if f := l.cluster.Faults; len(f) != 1 || f[0] != problem("a") {
		t.Fatalf("faults %v after b was mended", f)
	}
}

// world is the stupid twin: a server with one counter, whose history reaches
// the ledger through a watch that lags, relists, and answers to writes.
type world struct {
	version int
	objects map[string]string
	stream  []event // not yet delivered by the watch
}

type event struct {
	name, version string
	deleted       bool
}

func (w *world) write(name string) string {
	w.version++
	v := strconv.Itoa(w.version)
	w.objects[name] = v
	w.stream = append(w.stream, event{name, v, false})
	return v
}

func (w *world) remove(name string) {
	w.version++
	delete(w.objects, name)
	w.stream = append(w.stream, event{name, strconv.Itoa(w.version), true})
}

func (w *world) list() (objects []snapshot.Object, version string) {
	for name, v := range w.objects {
		objects = append(objects, service(name, v))
	}
	return objects, strconv.Itoa(w.version)
}

// Whatever the order in which the watch, late answers and relists tell it, the
// ledger never goes back, and it agrees with the server once all is told.
func TestLedgerFollowsTheServer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, w := newLedger(nil), &world{objects: map[string]string{}}
		var answers []event // of our own writes, still under way
		names := rapid.SampledFrom([]string{"a", "b", "c"})
		deliver := func(e event) {
			if e.deleted {
				l.remove(snapshot.Service, snapshot.Key{Namespace: "ns", Name: e.name}, e.version)
			} else {
				l.put(service(e.name, e.version))
			}
		}
		last := map[string]int{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch name := names.Draw(t, "name"); rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				w.write(name)
			case 1:
				if w.objects[name] != "" {
					w.remove(name)
				}
			case 2: // we write; the answer comes later
				if w.objects[name] != "" {
					answers = append(answers, event{name, w.write(name), false})
				}
			case 3:
				if n := len(answers); n > 0 {
					i := rapid.IntRange(0, n-1).Draw(t, "answer")
					deliver(answers[i])
					answers = append(answers[:i], answers[i+1:]...)
				}
			case 4:
				if len(w.stream) > 0 {
					deliver(w.stream[0])
					w.stream = w.stream[1:]
				}
			case 5: // the watch broke and starts again from a list
				objects, version := w.list()
				l.replace(groupOf(scope{kind: snapshot.Service}), objects, version)
				w.stream = nil
			}
			for _, name := range []string{"a", "b", "c"} {
				if v, _ := strconv.Atoi(versionOf(l, name)); v != 0 && v < last[name] {
					t.Fatalf("%s went from version %d back to %d", name, last[name], v)
				} else if v != 0 {
					last[name] = v
				}
			}
		}
		for _, e := range append(w.stream, answers...) {
			deliver(e)
		}
		for _, name := range []string{"a", "b", "c"} {
			if got, want := versionOf(l, name), w.objects[name]; got != want {
				t.Fatalf("%s: ledger has %q, server %q", name, got, want)
			}
		}
		if got, want := fmt.Sprint(l.cluster.Services.Len()), fmt.Sprint(len(w.objects)); got != want {
			t.Fatalf("ledger has %s objects, server %s", got, want)
		}
	})
}

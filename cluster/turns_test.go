package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"quayside.io/cluster/snapshot"
)

func about(namespace, name string) snapshot.Ref {
	return snapshot.Ref{Kind: "Service", Key: snapshot.Key{Namespace: namespace, Name: name}}
}

// A namespace that has a thousand things to say, and an object that has a hundred, hold
// up nobody.
func TestWhoHasMuchToSayKeepsNobodyWaiting(t *testing.T) {
	q := newTurns(eventQueue)
	for i := range eventQueue {
		if !q.add(news{about: about("noisy", fmt.Sprint(i)), reason: "Storm"}) {
			t.Fatalf("the %dth was dropped", i)
		}
	}
	for i := range 100 {
		q.add(news{about: about("shared", "noisy"), reason: fmt.Sprint(i)})
	}
	if q.add(news{about: about("shared", "quiet"), reason: "Quiet"}) {
		t.Error("the queue holds more than it may")
	}
	for _, want := range []string{"Storm", "0", "Storm", "Quiet", "Storm", "1"} {
		if n, ok := q.next(); !ok || n.reason != want {
			t.Errorf("%v %q has the turn, want %q", ok, n.reason, want)
		}
	}
}

// What is said of one object comes in order and once; nothing is lost but what is said
// to be, and that of those who have the most.
func TestTurnsKeepWhatTheyTake(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most = 12
		q := newTurns(most)
		waiting := map[snapshot.Ref][]int{}
		count := func(namespace string) (n int) {
			for ref, list := range waiting {
				if ref.Key.Namespace == namespace {
					n += len(list)
				}
			}
			return n
		}
		for i := range rapid.IntRange(1, 80).Draw(t, "steps") {
			if rapid.IntRange(0, 3).Draw(t, "take") == 0 {
				n, ok := q.next()
				if list := waiting[n.about]; ok != (q.n > 0 || len(list) > 0) || ok && (len(list) == 0 || fmt.Sprint(list[0]) != n.reason) {
					t.Fatalf("%v %v, of %v", ok, n, waiting)
				}
				if ok {
					waiting[n.about] = waiting[n.about][1:]
				}
				continue
			}
			if rapid.IntRange(0, 9).Draw(t, "forget") == 0 {
				q.forget("b")
				maps.DeleteFunc(waiting, func(ref snapshot.Ref, _ []int) bool { return ref.Key.Namespace == "b" })
			}
			ref := about(rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "namespace"), rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "name"))
			waiting[ref] = append(waiting[ref], i)
			if !q.add(news{about: ref, reason: fmt.Sprint(i)}) {
				drop(t, q, waiting, count)
			}
			total := 0
			for _, list := range waiting {
				total += len(list)
			}
			if total != q.n || total > most {
				t.Fatalf("%d wait, and %d are counted", total, q.n)
			}
		}
	})
}

// drop finds out which one is missing from q, and checks that it was the right one.
func drop(t *rapid.T, q *turns, waiting map[snapshot.Ref][]int, count func(string) int) {
	for ref, list := range waiting {
		var has int
		for _, s := range q.namespaces {
			for _, l := range s.lines {
				if l.about == ref {
					has = len(l.news)
				}
			}
		}
		if has == len(list) {
			continue
		}
		spaces := []string{"", "a", "b", "c"}
		if busiest := slices.MaxFunc(spaces, func(a, b string) int { return cmp.Compare(count(a), count(b)) }); count(ref.Key.Namespace) < count(busiest) {
			t.Fatalf("%v lost one, and %q has more: %v", ref, busiest, waiting)
		}
		for other, more := range waiting {
			if other.Key.Namespace == ref.Key.Namespace && len(more) > len(list) {
				t.Fatalf("%v lost one, and %v has more: %v", ref, other, waiting)
			}
		}
		waiting[ref] = list[:len(list)-1]
		return
	}
	t.Fatal("nothing was dropped")
}

package controller

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/controller/cluster"
	"quayside.io/controller/snapshot"
)

// ears keep what was told.
type ears struct {
	cluster.Writer
	heard []string
}

func (e *ears) Event(_ snapshot.Ref, _, reason, message string) {
	e.heard = append(e.heard, reason+": "+message)
}

// Somebody who mends one thing and finds the next hears of that at once; a text
// that never rests is told now and then, its last version always.
func TestTeller(t *testing.T) {
	web := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web"}}
	files, err := cluster.NewFiles(nil, nil, cluster.FilesOptions{})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = files.Run(t.Context()) }()
	changes := files.Watch(snapshot.Service)
	defer changes.Stop()
	files.Put(web)
	for files.Snapshot().Services.Len() == 0 {
		<-changes.C()
	}
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	e := &ears{}
	tells := newTeller(files.Source, e, func() time.Time { return now })
	expect := func(when string, after time.Duration, messages []string, want ...string) {
		t.Helper()
		now = now.Add(after)
		e.heard = nil
		var problems []snapshot.Problem
		for _, m := range messages {
			problems = append(problems, snapshot.Problem{Object: snapshot.RefOf(web), Reason: "Bad", Message: m})
		}
		tells.tell(problems)
		for i := range want {
			want[i] = "Bad: " + want[i]
		}
		if !slices.Equal(e.heard, want) {
			t.Errorf("%s: told %q, want %q", when, e.heard, want)
		}
	}
	expect("first", 0, []string{"a"}, "a")
	expect("unchanged", time.Second, []string{"a"})
	expect("mended, and another found", time.Second, []string{"b"}, "b")
	expect("gone", time.Second, nil)
	expect("back", time.Second, []string{"b"})
	expect("back after a while", 2*tellAgain, []string{"b"})
	expect("gone for good", 2*tellAgain, nil)
	expect("a new one", time.Second, []string{"b"}, "b")
	for i := range 3 * tellTimes {
		text := fmt.Sprint("restless ", i)
		if i+1 < tellTimes {
			expect(text, time.Second, []string{text}, text)
		} else {
			expect(text, time.Second, []string{text})
		}
	}
	if left := tells.due.Sub(now); left <= 0 || left > tellAgain {
		t.Fatalf("the last text is to be told in %v", left)
	}
	last := fmt.Sprint("restless ", 3*tellTimes-1)
	expect("rests at last", tells.due.Sub(now), []string{last}, last)
	if !tells.due.IsZero() {
		t.Errorf("told, and still due at %v", tells.due)
	}
}

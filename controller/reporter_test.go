package controller

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
)

// eventLog keeps the Events that were written.
type eventLog struct {
	cluster.Writer
	events []string
}

func (l *eventLog) Event(_ snapshot.Ref, _, reason, message string) {
	l.events = append(l.events, reason+": "+message)
}

// A Problem whose text changes is reported at once; one whose text never settles
// is reported now and then, and its last text always.
func TestReporter(t *testing.T) {
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
	l := &eventLog{}
	r := newReporter(files.Source, l, func() time.Time { return now })
	expect := func(when string, after time.Duration, messages []string, want ...string) {
		t.Helper()
		now = now.Add(after)
		l.events = nil
		var problems []snapshot.Problem
		for _, m := range messages {
			problems = append(problems, snapshot.Problem{Object: snapshot.RefOf(web), Reason: "Bad", Message: m})
		}
		r.report(problems)
		for i := range want {
			want[i] = "Bad: " + want[i]
		}
		if !slices.Equal(l.events, want) {
			t.Errorf("%s: reported %q, want %q", when, l.events, want)
		}
	}
	expect("first", 0, []string{"a"}, "a")
	expect("unchanged", time.Second, []string{"a"})
	expect("corrected, and another found", time.Second, []string{"b"}, "b")
	expect("gone", time.Second, nil)
	expect("back", time.Second, []string{"b"})
	expect("back after a while", 2*reportAgain, []string{"b"})
	expect("gone for good", 2*reportAgain, nil)
	expect("two at once", time.Second, []string{"b", "c"}, "b; c")
	expect("gone for good again", 3*reportAgain, nil)
	expect("a new one", time.Second, []string{"b"}, "b")
	for i := range 3 * reportTimes {
		text := fmt.Sprint("unsettled ", i)
		if i+1 < reportTimes {
			expect(text, time.Second, []string{text}, text)
		} else {
			expect(text, time.Second, []string{text})
		}
	}
	if left := r.due.Sub(now); left <= 0 || left > reportAgain {
		t.Fatalf("the last text is due in %v", left)
	}
	last := fmt.Sprint("unsettled ", 3*reportTimes-1)
	expect("rests at last", r.due.Sub(now), []string{last}, last)
	if !r.due.IsZero() {
		t.Errorf("reported, and still due at %v", r.due)
	}
}

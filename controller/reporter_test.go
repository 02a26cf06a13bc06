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

// holding returns a cluster of files with these Services in it.
func holding(t *testing.T, services ...snapshot.Object) *cluster.Files {
	t.Helper()
	files, err := cluster.NewFiles(nil, nil, cluster.FilesOptions{})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = files.Run(t.Context()) }()
	changes := files.Watch(snapshot.Service)
	defer changes.Stop()
	files.Put(services...)
	for files.Snapshot().Services.Len() < len(services) {
		<-changes.C()
	}
	return files
}

// A Problem whose text changes is reported at once; one whose text never settles
// is reported now and then, and its last text always.
func TestReporter(t *testing.T) {
	web := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web"}}
	files := holding(t, web)
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
	expect("back after a while", 2*cluster.ReportAgain, []string{"b"})
	expect("gone for good", 2*cluster.ReportAgain, nil)
	expect("two at once", time.Second, []string{"b", "c"}, "b; c")
	expect("gone for good again", 3*cluster.ReportAgain, nil)
	expect("a new one", time.Second, []string{"b"}, "b")
	for i := range 3 * cluster.ReportTimes {
		text := fmt.Sprint("unsettled ", i)
		if i+1 < cluster.ReportTimes {
			expect(text, time.Second, []string{text}, text)
		} else {
			expect(text, time.Second, []string{text})
		}
	}
	if left := r.due().Sub(now); left <= 0 || left > cluster.ReportAgain {
		t.Fatalf("the last text is due in %v", left)
	}
	last := fmt.Sprint("unsettled ", 3*cluster.ReportTimes-1)
	expect("rests at last", r.due().Sub(now), []string{last}, last)
	if !r.due().IsZero() {
		t.Errorf("reported, and still due at %v", r.due())
	}
}

// A Problem that lasts is told again within the hour for which its Event is kept, and
// only of an object that is there.
func TestProblemsThatLastAreToldAgain(t *testing.T) {
	web := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web"}}
	files := holding(t, web)
	l := &eventLog{}
	h, err := New(Options{Source: files.Source, Writer: l})
	if err != nil {
		t.Fatal(err)
	}
	h.leading.Store(true)
	h.settle("route", account{problems: []snapshot.Problem{
		{Object: snapshot.RefOf(web), Reason: "Bad", Message: "a"},
		{Object: snapshot.RefOf(web), Reason: "Bad", Message: "b"},
		{Object: snapshot.Ref{Kind: "File", Key: snapshot.Key{Name: "world.yaml"}}, Reason: "Unreadable", Message: "c"},
	}})
	again := cluster.Repeats{Most: reminders}
	begin := time.Date(2026, 11, 24, 8, 0, 0, 0, time.UTC)
	for at := time.Duration(0); at < 3*time.Hour; at += cluster.RemindEvery {
		h.remindOf(&again, begin.Add(at))
	}
	if n := len(l.events); n < 4 || n > 5 { // the first one, and the one after up to 45 minutes, and every 45 minutes
		t.Errorf("%d Events in three hours", n)
	}
	for _, e := range l.events {
		if e != "Bad: a; b" {
			t.Errorf("told %q", e)
		}
	}
	h.settle("route", account{})
	l.events = nil
	h.remindOf(&again, begin.Add(24*time.Hour))
	if len(l.events) > 0 {
		t.Errorf("told %q, which is over", l.events)
	}
}

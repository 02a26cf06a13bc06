package cluster

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/lastknown"
	"quayside.io/cluster/snapshot"
)

// remembering is an API behind a server that does not answer, with a memory.
func remembering(t *testing.T, file string, change ...func(*APIOptions)) *API {
	t.Helper()
	options := APIOptions{
		Kubeconfig: kubeconfigOf(t, "http://127.0.0.1:1"), Log: slog.New(slog.DiscardHandler), LastKnown: LastKnown{File: file, MaxAge: time.Hour},
		Kinds: []snapshot.Kind{snapshot.Service, snapshot.Secret}, Referenced: []snapshot.Kind{snapshot.Secret},
	}
	for _, c := range change {
		c(&options)
	}
	api, err := NewAPI(options)
	if err != nil {
		t.Fatal(err)
	}
	api.memory.wait = 0
	return api
}

// tls is the Secret of these tests.
func tls() snapshot.Key { return snapshot.Key{Namespace: "ns", Name: "tls"} }

// written is a file of a process that saw a Service and a Secret.
func written(t *testing.T, at time.Time) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "cluster")
	api := remembering(t, file)
	ctx, stop := context.WithCancel(t.Context())
	go api.loop(ctx)
	defer func() { stop(); <-api.stopped }()
	write := func() {
		t.Helper()
		if _, err := api.memory.write(ctx, at); err != nil {
			t.Fatal(err)
		}
	}
	seen := api.Refer(snapshot.Secret, []snapshot.Key{tls()})
	_, waiting := api.references.turn()
	api.answer(waiting)
	write() // nothing is known in full yet
	if _, err := os.Stat(file); err == nil {
		t.Fatal("what is known in part is written")
	}
	if err := api.tell(ctx, func(l *ledger) {
		l.replace(groupOf(scope{kind: snapshot.Service}), []snapshot.Object{service("a", "700")}, "701")
	}); err != nil {
		t.Fatal(err)
	}
	write() // nor of what is referred to
	if _, err := os.Stat(file); err == nil {
		t.Fatal("it is written without the Secrets that are waited for")
	}
	if err := api.tell(ctx, func(l *ledger) {
		l.replace(groupOf(scope{snapshot.Secret, "ns", "tls"}), []snapshot.Object{secret("ns", "tls", "702")}, "703")
	}); err != nil {
		t.Fatal(err)
	}
	<-seen
	write()
	return file
}

// What could not be written while a watch waited for its turn is written when it has had it,
// though nothing else changes.
func TestWhatWasNotWholeIsWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cluster")
	api := remembering(t, file)
	api.memory.pause, api.memory.work = time.Millisecond, time.Minute // the file before was a large one
	ctx, stop := context.WithCancel(t.Context())
	go api.loop(ctx)
	kept := make(chan struct{})
	defer func() { stop(); <-kept; <-api.stopped }()
	api.Refer(snapshot.Secret, nil)
	if err := api.tell(ctx, func(l *ledger) {
		l.replace(groupOf(scope{kind: snapshot.Service}), []snapshot.Object{service("a", "700")}, "701")
	}); err != nil {
		t.Fatal(err)
	}
	api.gate.mu.Lock()
	api.gate.lost, api.gate.failed = true, time.Now()
	api.gate.mu.Unlock()
	go func() { defer close(kept); api.memory.keep(ctx) }()
	time.Sleep(50 * time.Millisecond) // if that is too short, less is tested
	if _, err := os.Stat(file); err == nil {
		t.Fatal("what is not watched is written as true")
	}
	api.gate.mu.Lock()
	api.gate.lost = false
	api.gate.mu.Unlock()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(file); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("it is never written")
		}
	}
}

// What has changed is written soon, however slow the disk is.
func TestASlowDiskDelaysNothing(t *testing.T) {
	api := remembering(t, filepath.Join(t.TempDir(), "cluster"))
	saved := make(chan []byte, 100)
	api.memory.pause, api.memory.save = time.Millisecond, func(_ string, content []byte) error {
		time.Sleep(100 * time.Millisecond) // 200 times that would be 20 s
		saved <- content
		return nil
	}
	ctx, stop := context.WithCancel(t.Context())
	go api.loop(ctx)
	kept := make(chan struct{})
	defer func() { stop(); <-api.stopped; <-kept }()
	api.Refer(snapshot.Secret, nil)
	_, waiting := api.references.turn()
	api.answer(waiting)
	go func() { defer close(kept); api.memory.keep(ctx) }()
	for _, name := range []string{"first", "second"} {
		if err := api.tell(ctx, func(l *ledger) {
			l.replace(groupOf(scope{kind: snapshot.Service}), []snapshot.Object{service(name, "700")}, "701")
		}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for content := []byte(nil); !strings.Contains(string(content), name); {
			select {
			case content = <-saved:
			case <-time.After(time.Minute):
				t.Fatalf("%s is not written", name)
			}
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s was written after %v", name, took)
		}
	}
}

// Whether a process has said what it wants before its former life is recalled or only then:
// what it does not want keeps nothing from being written, and what it wants is there.
func TestWhatNobodyWantsIsNotRecalled(t *testing.T) {
	other := snapshot.Key{Namespace: "ns", Name: "other"}
	for _, early := range []bool{true, false} {
		for _, c := range []struct {
			wants snapshot.Key
			knows bool
		}{{tls(), true}, {other, false}} {
			file := written(t, time.Now())
			api := remembering(t, file)
			ctx, stop := context.WithCancel(t.Context())
			go api.loop(ctx)
			if early {
				api.Refer(snapshot.Secret, []snapshot.Key{c.wants})
			}
			if err := api.memory.recall(ctx); err != nil {
				t.Fatal(err)
			}
			if !early {
				api.Refer(snapshot.Secret, []snapshot.Key{c.wants})
			}
			_, waiting := api.references.turn()
			api.answer(waiting)
			if err := api.tell(ctx, func(l *ledger) {
				if _, has := l.cluster.Secrets.Get(tls()); has != c.knows || l.cluster.Reach(snapshot.Secret).Covers(tls()) != c.knows {
					t.Errorf("early %v, wanting %v: the Secret is there: %v", early, c.wants, has)
				}
				l.replace(groupOf(scope{kind: snapshot.Service}), []snapshot.Object{service("a", "700")}, "701")
				l.replace(groupOf(scope{snapshot.Secret, "ns", c.wants.Name}), nil, "703")
			}); err != nil {
				t.Fatal(err)
			}
			if whole, err := api.memory.write(ctx, time.Now()); !whole || err != nil {
				t.Errorf("early %v, wanting %v: written: %v, %v", early, c.wants, whole, err)
			}
			stop()
			<-api.stopped
		}
	}
}

// What is only recalled is not written: the server would refuse each attempt, while a process
// waits for its turn to read the object again.
func TestWhatIsRecalledIsNotWritten(t *testing.T) {
	api := remembering(t, written(t, time.Now()))
	ctx, stop := context.WithCancel(t.Context())
	go api.loop(ctx)
	defer func() { stop(); <-api.stopped }()
	if err := api.memory.recall(ctx); err != nil {
		t.Fatal(err)
	}
	s, ok := api.Snapshot().Services.Get(snapshot.Key{Namespace: "ns", Name: "a"})
	if !ok {
		t.Fatal("nothing is recalled")
	}
	s = s.DeepCopy()
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
	if err := api.UpdateStatus(ctx, s); !errors.Is(err, ErrStale) {
		t.Errorf("writing it: %v", err)
	}
}

// A process whose server does not answer works with what it knew in its former life,
// Secrets included, and waits for nothing that nobody can tell it.
func TestAProcessRecallsWhatItKnew(t *testing.T) {
	api := remembering(t, written(t, time.Now()))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- api.Run(ctx) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	<-api.Synced()
	c := api.Snapshot()
	if _, ok := c.Services.Get(snapshot.Key{Namespace: "ns", Name: "a"}); !ok {
		t.Error("the Service is forgotten")
	}
	if _, ok := c.Secrets.Get(tls()); !ok {
		t.Error("the Secret is forgotten")
	}
	other := snapshot.Key{Namespace: "ns", Name: "other"}
	if !c.Reach(snapshot.Secret).Covers(tls()) || c.Reach(snapshot.Secret).Covers(other) || !c.Reach(snapshot.Service).Covers(other) {
		t.Error("what was known to be missing, and what was not, is forgotten")
	}
	<-api.Refer(snapshot.Secret, []snapshot.Key{tls(), other})
	if _, ok := api.Snapshot().Secrets.Get(tls()); !ok {
		t.Error("the Secret is gone once it is referred to")
	}
}

// Only what is whole, young and one's own is used.
func TestAFileThatMayNotBeUsed(t *testing.T) {
	now := time.Now()
	for name, tt := range map[string]struct {
		at     time.Time
		change func(*APIOptions)
		spoil  func(file string) error
		want   string
	}{
		"good":               {at: now.Add(-50 * time.Minute)},
		"old":                {at: now.Add(-61 * time.Minute), want: "old, more than"},
		"of tomorrow":        {at: now.Add(2 * time.Minute), want: "to come"},
		"of another process": {at: now, change: func(o *APIOptions) { o.Component = "proxy" }, want: "another cluster"},
		"of another view":    {at: now, change: func(o *APIOptions) { o.WatchNamespace = "ns" }, want: "another cluster"},
		"cut":                {at: now, spoil: func(f string) error { return os.Truncate(f, 100) }, want: "checksum"},
		"open to others":     {at: now, spoil: func(f string) error { return os.Chmod(f, 0o644) }, want: "open to others"},
		"missing":            {at: now, spoil: os.Remove, want: fs.ErrNotExist.Error()},
	} {
		file := written(t, tt.at)
		if tt.spoil != nil {
			if err := tt.spoil(file); err != nil {
				t.Fatal(err)
			}
		}
		if tt.change == nil {
			tt.change = func(*APIOptions) {}
		}
		known, err := remembering(t, file, tt.change).memory.read(now)
		if tt.want == "" && (err != nil || len(known.Objects) != 2) {
			t.Errorf("%s: %v", name, err)
		}
		if tt.want != "" && (err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "no such file or directory", fs.ErrNotExist.Error()), tt.want)) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// What was recalled yields to all that a server says, whatever versions it counts, and
// is written by nobody as if it were known.
func TestAServerHasTheLastWord(t *testing.T) {
	l := newLedger([]snapshot.Kind{snapshot.Service, snapshot.Node})
	all := scope{kind: snapshot.Service}
	l.recall(&lastknown.Known{
		Parts:   []lastknown.Part{{Kind: snapshot.Service, Whole: true}, {Kind: snapshot.Secret, Key: tls(), Whole: true}, {Kind: snapshot.Node}},
		Objects: []snapshot.Object{service("gone", "900"), service("stays", "900"), secret("ns", "tls", "900"), secret("ns", "nobody's", "900")},
	})
	if versionOf(l, "gone") == "" || l.cluster.Secrets.Len() != 1 {
		t.Fatalf("recalled %q, %d Secrets", versionOf(l, "gone"), l.cluster.Secrets.Len())
	}
	if len(l.waiting) != 0 || !l.cluster.Reach(snapshot.Service).Covers(snapshot.Key{}) || l.cluster.Reach(snapshot.Node).Covers(snapshot.Key{}) {
		t.Fatalf("waiting for %v", l.waiting)
	}
	// The server was restored from a backup: its versions are lower.
	l.replace(groupOf(all), []snapshot.Object{service("stays", "5"), service("new", "6")}, "7")
	for name, want := range map[string]string{"gone": "", "stays": "5", "new": "6"} {
		if got := versionOf(l, name); got != want {
			t.Errorf("%s has version %q, want %q", name, got, want)
		}
	}
	if len(l.recalled) != 2 || l.cluster.Secrets.Len() != 1 {
		t.Errorf("%v is still recalled only", l.recalled)
	}
	l.settle(scope{snapshot.Secret, "ns", "tls"}) // it may not be read any more
	if l.cluster.Secrets.Len() != 0 {
		t.Error("a Secret that may not be read is still used")
	}
	l.drop(groupOf(scope{kind: snapshot.Node}), func(snapshot.Key) bool { return false })
	if len(l.recalled) != 0 {
		t.Errorf("%v is waited for", l.recalled)
	}
}

// What a server has said in this life is not overruled by the life before.
func TestNothingHeardIsRecalled(t *testing.T) {
	l := newLedger(nil)
	l.replace(groupOf(scope{kind: snapshot.Service}), nil, "7")
	l.recall(&lastknown.Known{Parts: []lastknown.Part{{Kind: snapshot.Service, Whole: true}}, Objects: []snapshot.Object{service("gone", "3")}})
	if v := versionOf(l, "gone"); v != "" || l.alone || len(l.recalled) != 0 {
		t.Errorf("recalled %q", v)
	}
}

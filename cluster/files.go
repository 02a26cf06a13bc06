package cluster

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
)

// FilesOptions are the options of NewFiles. The zero value is usable.
type FilesOptions struct {
	// NodeName names the machine where the files hold no Node; the host's own
	// name by default.
	NodeName string
	// IngressClass is made where the files do not have it, "quayside" by
	// default; if they have no class at all, it is the default class.
	IngressClass string
	Log          *slog.Logger
}

// Files is a cluster of manifest files, of an embedded file system and of
// objects that the program puts itself. It is Source and Writer at once: what
// is written stays in its snapshot and nowhere else.
type Files struct {
	*Source
	log  *slog.Logger
	opts FilesOptions

	mu      sync.Mutex // guards what follows; the inbox is posted to under it, so that order is kept
	cache   *fileCache
	store   *fileStore
	program *origin // what is put
	running bool    // Run has begun: its loop owns the ledger
	events  eventRing
}

var _ Writer = (*Files)(nil)

// NewFiles reads paths (files, or folders whose files are read) and embedded,
// either of which may be empty. It fails only if a path does not exist; what
// does not parse is a Fault in the Snapshot. The Snapshot is complete when it
// returns; Run then follows the files.
func NewFiles(paths []string, embedded []fs.FS, opts FilesOptions) (*Files, error) {
	if opts.NodeName == "" {
		opts.NodeName = HostName()
	}
	opts.IngressClass = cmp.Or(opts.IngressClass, ingressclass.DefaultName)
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	for _, p := range paths {
		if _, err := os.Stat(p); err != nil {
			return nil, fmt.Errorf("manifests: %w", err)
		}
	}
	f := &Files{
		Source:  newSource(slices.Collect(snapshot.Kinds())),
		log:     opts.Log,
		opts:    opts,
		cache:   newFileCache(paths),
		store:   newFileStore(),
		program: &origin{group: math.MinInt},
	}
	origins, err := readEmbedded(embedded)
	if err != nil {
		return nil, err
	}
	inFiles, _, _ := f.cache.scan(time.Now())
	f.arrange(append(origins, inFiles...), func(l *ledger) {
		for k := range snapshot.Kinds() {
			l.reach(scope{kind: k})
			l.settle(scope{kind: k})
		}
	})
	return f, nil
}

// Run follows the files until ctx ends.
func (f *Files) Run(ctx context.Context) error {
	f.mu.Lock()
	f.running = true
	f.mu.Unlock()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { f.loop(ctx); return nil })
	g.Go(func() error { return f.follow(ctx) })
	return g.Wait()
}

// Put adds objects as if a file held them, or replaces those it put before. It
// wins over files, never blocks, and gives each object the version and age
// that it lacks. Before Run, Snapshot shows it when Put returns: who reads a
// complete Snapshot first, such as a proxy that says that it is ready, would
// otherwise find nothing in it.
func (f *Files) Put(objs ...snapshot.Object) {
	copies := make([]snapshot.Object, len(objs))
	for i, o := range objs {
		if _, ok := snapshot.KindOf(o); !ok {
			panic(fmt.Sprintf("cluster: no place for a %T", o))
		}
		copies[i] = o.DeepCopyObject().(snapshot.Object)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tellOf(f.store.put(f.program, stripAll(copies), f.synthesize), nil)
}

// Delete takes away what Put added. What a file holds stays.
func (f *Files) Delete(kind snapshot.Kind, key snapshot.Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tellOf(f.store.drop(f.program, id{kind, key}, f.synthesize), nil)
}

// UpdateStatus implements Writer.
func (f *Files) UpdateStatus(ctx context.Context, obj snapshot.Object) error {
	ctx, cancel := context.WithTimeout(ctx, WriteDeadline)
	defer cancel()
	o, err := f.write(obj)
	if err != nil {
		return err
	}
	return f.tell(ctx, func(l *ledger) { l.put(o) })
}

func (f *Files) write(obj snapshot.Object) (snapshot.Object, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	kind, ok := snapshot.KindOf(obj)
	if !ok || statusOf(obj) == nil {
		return nil, fmt.Errorf("write status of %s: this kind has none", snapshot.RefOf(obj))
	}
	at := id{kind, snapshot.KeyOf(obj)}
	if _, isSpeaker := obj.(*v1alpha1.SpeakerStatus); isSpeaker && f.store.get(at) == nil && obj.GetResourceVersion() == "" {
		f.tellOf(f.store.put(f.program, []snapshot.Object{obj.DeepCopyObject().(snapshot.Object)}, f.synthesize), nil)
		return f.store.get(at).object, nil
	}
	return f.store.write(at, obj)
}

// Event implements Writer: it is kept for Events.
func (f *Files) Event(about snapshot.Ref, eventType, reason, message string) {
	f.events.add(about, eventType, reason, message)
}

// Events returns the latest events, oldest first.
func (f *Files) Events() []Event { return f.events.list() }

// Inflight implements Writer: here every write has an answer.
func (f *Files) Inflight() []snapshot.Object { return nil }

// arrange brings the store up to date with the origins that changed and tells the loop
// what that means. The caller holds mu, or is the constructor.
func (f *Files) arrange(changed []*origin, also func(*ledger)) {
	f.tellOf(f.store.arrange(changed, f.synthesize), also)
}

// tellOf tells the loop what has changed in the store. The caller holds mu, or is the
// constructor.
func (f *Files) tellOf(news changes, also func(*ledger)) {
	faults := append(f.cache.faults(), f.store.duplicates()...)
	f.note(true, func(l *ledger) {
		for at, version := range news.gone {
			l.remove(at.kind, at.key, version)
		}
		l.putAll(news.put)
		l.fault("files", faults)
		if also != nil {
			also(l)
		}
	})
	if !f.running {
		f.enter(f.inbox.take())
	}
}

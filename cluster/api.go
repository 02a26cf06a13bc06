package cluster

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"quayside.io/cluster/snapshot"
)

// APIOptions say what to watch and as whom.
type APIOptions struct {
	// Kubeconfig is how the API server is reached; the zero value is the pod's own account.
	Kubeconfig Kubeconfig
	// Kinds are watched. The fewer, the less memory and load.
	Kinds []snapshot.Kind
	// WatchNamespace narrows namespaced kinds to one namespace; empty: all.
	WatchNamespace string
	// Referenced are those of Kinds of which only the objects that Refer names
	// are watched: by name, or by namespace where there are many.
	Referenced []snapshot.Kind
	// ByName reports whether those of a kind and namespace are watched by name however
	// many they are, which is all that an account may that is bound to resourceNames.
	ByName func(kind snapshot.Kind, namespace string) bool
	// Patience is how long a part of a kind that may not be read is waited for,
	// since the right to read it is on its way.
	Patience time.Duration
	// SpeakerStatus narrows SpeakerStatuses to the one of a node; empty: no
	// narrowing.
	SpeakerStatus string
	// OnEveryNode says that each node has such a process, so that after an outage of
	// the API server each takes its time: the longer, the more Nodes it knows.
	OnEveryNode bool
	// Workload runs this process and others of its kind, which may start at the same time.
	// Without it they are not kept apart then.
	Workload Workload
	// Fleet counts, in what is known, the processes of this one's kind, for the same
	// reason. It is asked rarely. Nil: OnEveryNode says it, or there are few.
	Fleet func(*snapshot.Cluster) int
	// LastKnown keeps what is known for the next life of the process; the zero value
	// keeps nothing.
	LastKnown LastKnown
	// Optional kinds are taken as empty where they may not be read.
	Optional []snapshot.Kind
	// Owner is a ClusterRole with which the garbage collector deletes what this process
	// makes: Secrets, and SpeakerStatuses. Empty: no such thing is deleted with anything
	// but a SpeakerStatus with its Node.
	Owner string
	// Lenient takes a kind that may not be read as empty instead of waiting
	// for permission: for commands that show what they can.
	Lenient bool
	// Component names this process in Events and to the server: "controller".
	Component string
	// Instance names this very process among its kind, such as the pod; the
	// host's name by default.
	Instance   string
	Log        *slog.Logger
	Registerer prometheus.Registerer
}

// API is a cluster behind an API server: Source and Writer at once.
type API struct {
	*Source
	opts      APIOptions
	log       *slog.Logger
	clients   *clients
	resources map[snapshot.Kind]snapshot.Resource
	contact   *contact
	gate      *gate
	start     *start
	fleet     atomic.Pointer[fleetCount]
	hint      atomic.Int64 // how many processes there are, until that is seen; 0: unknown
	endless   atomic.Bool  // lists that the server streams have no end
	events    *eventWriter
	memory    *memory
	writes    *prometheus.CounterVec

	mu     sync.Mutex
	doubts []doubt
	doubt  chan struct{} // there is a new one
}

var _ Writer = (*API)(nil)

// NewAPI prepares access to a cluster. It fails on a bad configuration only; a
// server that cannot be reached is waited for in Run.
func NewAPI(opts APIOptions) (*API, error) {
	opts.Component = cmp.Or(opts.Component, "quayside")
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Instance == "" {
		name, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("name of this instance: %w", err)
		}
		opts.Instance = name
	}
	all := resources()
	groups := []schema.GroupVersion{
		authenticationv1.SchemeGroupVersion, authorizationv1.SchemeGroupVersion,
		coordinationv1.SchemeGroupVersion, eventsv1.SchemeGroupVersion, rbacv1.SchemeGroupVersion, appsv1.SchemeGroupVersion,
	}
	for _, r := range all {
		if !slices.Contains(groups, r.Group) {
			groups = append(groups, r.Group)
		}
	}
	clients, err := newClients(opts.Kubeconfig, opts.Component, groups)
	if err != nil {
		return nil, err
	}
	a := &API{
		Source:    newSource(slices.DeleteFunc(slices.Clone(opts.Kinds), func(k snapshot.Kind) bool { return slices.Contains(opts.Referenced, k) })),
		opts:      opts,
		log:       opts.Log,
		clients:   clients,
		resources: all,
		doubt:     make(chan struct{}, 1),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quayside_api_writes_total", Help: "Writes to the API server by kind and outcome: ok, stale, refused, unknown.",
		}, []string{"kind", "outcome"}),
	}
	a.references = newReferences(opts.Referenced)
	if opts.ByName != nil {
		a.references.byName = opts.ByName
	}
	a.contact = newContact(a.Source, opts, clients.config.Host, all)
	a.gate = newGate(a.processes)
	clients.heard.broke = a.gate.broke
	a.events = newEventWriter(a)
	a.memory = newMemory(a)
	a.start = newStart(a)
	if opts.Registerer != nil {
		opts.Registerer.MustRegister(a.writes, a.events.dropped, a.clients.heard.staleness())
		if opts.LastKnown.File != "" {
			opts.Registerer.MustRegister(a.memory.written)
		}
	}
	return a, nil
}

// Run watches and writes until ctx ends.
func (a *API) Run(ctx context.Context) error {
	// client-go complains about every failed attempt; contact tells the same
	// once, on the edge.
	ctx = klog.NewContext(ctx, logr.Discard())
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { a.loop(ctx); return nil })
	g.Go(func() error { a.start.run(ctx); return nil })
	g.Go(func() error { a.events.run(ctx); return nil })
	g.Go(func() error { a.clearDoubts(ctx); return nil })
	g.Go(func() error { a.watchReferenced(ctx); return nil })
	g.Go(func() error { a.memory.run(ctx); return nil })
	for _, kind := range a.opts.Kinds {
		if !a.references.follows(kind) {
			g.Go(func() error { a.reflect(ctx, newFeed(a.Source, groupOf(scope{kind: kind}), nil)); return nil })
		}
	}
	err := g.Wait()
	a.clients.http.CloseIdleConnections()
	return err
}

// countEvery lies between two calls of APIOptions.Fleet.
const countEvery = 10 * time.Second

// fleetCount is how many processes there were at a time.
type fleetCount struct {
	n  int
	at time.Time
}

// processes is about how many there are of this one's kind.
func (a *API) processes() int {
	n := a.processesSeen()
	if !IsClosed(a.synced) {
		n = max(n, int(a.hint.Load()))
	}
	return n
}

func (a *API) processesSeen() int {
	c := a.Snapshot()
	switch {
	case a.opts.Fleet != nil:
		last := a.fleet.Load()
		if last == nil || time.Since(last.at) > countEvery {
			last = &fleetCount{max(1, a.opts.Fleet(c)), time.Now()}
			a.fleet.Store(last)
		}
		return last.n
	case !a.opts.OnEveryNode:
		return 1 // or a few, which may watch thousands of names
	}
	return max(c.Nodes.Len(), c.SpeakerStatuses.Len()) // it may watch one Node only
}

// on returns the client of a kind's group.
func (a *API) on(r snapshot.Resource) rest.Interface { return a.clients.byGroup[r.Group] }

// deadline bounds a write, and the server's work on it.
func deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, WriteDeadline)
}

// doubt is a write whose outcome is unknown.
type doubt struct {
	at     id
	base   string // the resourceVersion it was to replace
	wanted snapshot.Object
	since  time.Time
}

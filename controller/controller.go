package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
	"quayside.io/controller/assign"
	"quayside.io/proxy/route"
	"quayside.io/speaker/announce"
)

// Options are what a Controller is made with.
type Options struct {
	// Source must watch Kinds.
	Source *cluster.Source
	Writer cluster.Writer

	// Lead runs its argument while this process is the leader; nil: it always
	// is, as in `up` and with a single replica.
	Lead func(ctx context.Context, run func(ctx context.Context) error) error
	// Prepare is what a leader sees to once, beside its other work, and tries
	// again until it succeeds: the gossip key. It may be nil.
	Prepare func(ctx context.Context) error

	// Rotate is what a leader sees to from time to time: the keys of session tickets.
	// It returns when it is due again. It may be nil.
	Rotate func(ctx context.Context, now time.Time) (next time.Time, err error)

	// Tend is what a leader sees to again and again, when it says: the age of the
	// gossip key. It may be nil.
	Tend func(ctx context.Context) (next time.Time, err error)

	Assign assign.Options
	// PublishHosts, if not zero, is a Service that selects proxies on the network of their
	// nodes: the addresses of these nodes go into the status of our Ingresses, as
	// Assign.PublishAddresses.
	PublishHosts snapshot.Key
	// Announce and Routes, if set, are compiled for their Problems.
	Announce *announce.Options
	Routes   *route.Options

	// Grants, if set, says what the proxies may read; it needs Routes.
	Grants *GrantOptions
	// Passwords, if set, says which Secrets the speakers may read.
	Passwords *PasswordOptions

	// Belongings, if set, sees to it that what is made at run time goes with the release.
	Belongings interface {
		Run(ctx context.Context) error
	}

	// Notes, if set, writes on Ingresses what is wrong with them; it needs Routes.
	Notes Annotator

	// Log and Registerer may be nil: then nothing is logged or measured.
	Log        *slog.Logger
	Registerer prometheus.Registerer
}

// Controller is the component. Make one with New.
type Controller struct {
	options Options
	log     *slog.Logger
	metrics *metrics
	leading atomic.Bool
	plan    atomic.Pointer[assign.Plan]

	inspection atomic.Pointer[inspection] // never nil
	// referring is held while the source is told what is watched, so that a
	// leader's list is the last.
	referring sync.Mutex
	asking    sync.Mutex
	seen      *route.Table // of the last who asked and was not answered by a leader

	settled chan struct{} // there are other Problems than before

	mu       sync.Mutex
	issues   map[string]*account // by compiler
	withheld bool                // some of announce's are not told yet
	reporter *reporter
}

// Kinds are those that a Controller reads. Secrets and ConfigMaps are only
// read for the Problems of routes.
func Kinds() []snapshot.Kind {
	return []snapshot.Kind{
		snapshot.Service, snapshot.EndpointSlice, snapshot.Node, snapshot.Namespace, snapshot.Secret, snapshot.ConfigMap,
		snapshot.Ingress, snapshot.IngressClass, snapshot.IPAddressPool, snapshot.L2Advertisement,
		snapshot.BGPAdvertisement, snapshot.BGPPeer, snapshot.BFDProfile, snapshot.Community, snapshot.SpeakerStatus,
	}
}

// New returns a Controller that does nothing yet.
func New(o Options) (*Controller, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Lead == nil {
		o.Lead = func(ctx context.Context, run func(context.Context) error) error { return run(ctx) }
	}
	h := &Controller{
		options:  o,
		log:      o.Log,
		settled:  make(chan struct{}, 1),
		issues:   map[string]*account{},
		reporter: newReporter(o.Source, o.Writer, time.Now),
	}
	h.inspection.Store(&inspection{next: make(chan struct{})})
	h.metrics = newMetrics(h)
	if o.Registerer != nil {
		if err := o.Registerer.Register(h.metrics); err != nil {
			return nil, fmt.Errorf("register metrics of the controller: %w", err)
		}
	}
	return h, nil
}

// Run decides and writes until ctx ends.
func (h *Controller) Run(ctx context.Context) error {
	select {
	case <-h.options.Source.Synced():
	case <-ctx.Done():
		return nil
	}
	return h.options.Lead(ctx, h.lead)
}

// Ready returns nil once the cluster has been seen in full, whether or not this
// process leads.
func (h *Controller) Ready() error {
	select {
	case <-h.options.Source.Synced():
		return nil
	default:
		return errors.New("the cluster has not been seen in full")
	}
}

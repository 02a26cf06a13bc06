package speaker

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/bfd"
	"quayside.io/speaker/bgp"
	"quayside.io/speaker/kubeproxy"
	"quayside.io/speaker/l2"
	"quayside.io/speaker/members"
	"quayside.io/speaker/rtadv"
)

// Options of a speaker.
type Options struct {
	Source   *cluster.Source
	Writer   cluster.Writer
	NodeName string

	// MembersBind is HOST:PORT, MembersKeyFile holds the secrets, Profile is
	// "default", "fast" or "wan"; see package members.
	MembersBind    string
	MembersKeyFile string
	Profile        string
	// SigningKey is an ed25519 key to sign gossip with; nil: a new one.
	SigningKey ed25519.PrivateKey
	// Solitary says that this is the only speaker: there is no gossip.
	Solitary bool
	// IgnoreExcludeLB lets nodes announce that are labelled
	// node.kubernetes.io/exclude-from-external-load-balancers.
	IgnoreExcludeLB bool
	// ExternalIPs announces the addresses in spec.externalIPs of Services, too.
	ExternalIPs bool
	// HandOverOnCordon hands addresses over as soon as this node is cordoned.
	HandOverOnCordon bool
	// KubeProxy is HOST:PORT of the metrics of this node's kube-proxy. The node takes no
	// new address before kube-proxy has written its rules. Empty: it does not wait.
	KubeProxy string
	// NodesUpTo is the largest number of speakers at which each watches all Nodes. With
	// more, each watches its own Node and reads those of the others from their
	// SpeakerStatuses, if all publish them. Zero: each always watches all Nodes.
	NodesUpTo int
	// Namespace is where the Secrets with passwords of BGP peers are.
	Namespace string
	// BGPListen is HOST:PORT for BGP sessions that routers open; empty: this node only
	// dials.
	BGPListen string
	// HandOver is how long an orderly stop waits for the successors at most; zero: 3 s.
	HandOver time.Duration
	// Processors is how many processors this process may use while the speaker works; while
	// it rests, that is one. Zero: as many as ever.
	Processors int
	// LAN and Gossip replace layer 2 and the members in simulations of a fleet; nil: the
	// real ones.
	LAN    LAN
	Gossip Gossip

	Log        *slog.Logger
	Registerer prometheus.Registerer
}

// Speaker announces the addresses of this node.
type Speaker struct {
	opts     Options
	l2       LAN
	hearing  *hearing
	bgp      *bgp.Speaker
	bfd      *bfd.Detector // of the paths to routers
	links    *rtadv.Finder // of routers that are known by a link only
	members  Gossip        // nil: solitary
	rules    *kubeproxy.Watcher
	health   *kubeproxy.Health
	metrics  *metrics
	cores    processors
	lastStep atomic.Pointer[stepState]
	problems atomic.Pointer[[]snapshot.Problem]
	began    time.Time
	mute     string // why layer 2 cannot work here; "": it can

	// The fields below belong to the loop.
	view    clusterView
	status  *v1alpha1.SpeakerStatusStatus // the last of the machine
	secrets []snapshot.Key                // with passwords of sessions
	unread  string                        // which of them is not read yet; "": none
	routers *bgp.Want                     // without the results of BFD
	doubts  map[string]string             // why it is not certain which router is meant, by session
	told    []v1alpha1.BGPSession         // as last published
	reports cluster.Reports               // of what is wrong with this node
	again   *time.Timer                   // goes off when reports has something that was held back
	drains  bool                          // the node itself is being drained
	signers reader                        // of the others' keys
	forged  map[string]struct{}           // nodes in whose names forged gossip has been reported
}

// New returns a speaker that does nothing until Run.
func New(opts Options) (*Speaker, error) {
	switch {
	case opts.NodeName == "":
		return nil, errors.New("speaker: the name of this node is missing; set --node-name")
	case opts.MembersKeyFile == "" && !opts.Solitary && opts.Gossip == nil:
		return nil, errors.New("speaker: gossip needs a key; set --members-key-file to a file with a secret of at least 16 bytes")
	case opts.Source == nil || opts.Writer == nil:
		return nil, errors.New("speaker: no source of objects, or nowhere to write")
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.HandOver == 0 {
		opts.HandOver = 3 * time.Second
	}
	s := &Speaker{
		opts: opts, began: time.Now(), l2: opts.LAN, members: opts.Gossip, metrics: newMetrics(opts.Registerer), cores: processors{all: opts.Processors},
		bfd:   bfd.New(bfd.Options{Log: opts.Log, Registerer: opts.Registerer}),
		links: rtadv.New(rtadv.Options{Log: opts.Log}),
		bgp:   bgp.New(bgp.Options{Log: opts.Log, Registerer: opts.Registerer, Listen: opts.BGPListen}),
		rules: kubeproxy.New(kubeproxy.Options{Address: opts.KubeProxy, Log: opts.Log}), health: kubeproxy.NewHealth(opts.Log),
	}
	if s.l2 == nil {
		s.l2 = l2.New(l2.Options{Log: opts.Log, Registerer: opts.Registerer})
	}
	switch {
	case s.members != nil:
	case opts.Solitary:
		s.members = newSolitary(opts.NodeName)
	default:
		m, err := members.New(members.Options{
			NodeName: opts.NodeName, Bind: opts.MembersBind, KeyFile: opts.MembersKeyFile, Profile: opts.Profile, SigningKey: opts.SigningKey,
			Log: opts.Log, Registerer: opts.Registerer,
		})
		if err != nil {
			return nil, fmt.Errorf("speaker: %w", err)
		}
		s.members = m
	}
	s.again, s.hearing = time.NewTimer(time.Hour), newHearing(s.l2, opts.Source.Snapshot)
	s.routers, s.view = &bgp.Want{}, newClusterView(opts.Source, opts.NodeName, opts.NodesUpTo, opts.Log)
	s.lastStep.Store(&stepState{node: opts.NodeName, waiting: "speaker is starting"})
	s.problems.Store(&[]snapshot.Problem{})
	return s, nil
}

// State returns the *State of the last step.
func (s *Speaker) State() any { return s.lastStep.Load().describe() }

// Problems are those of the plan and those that only this node can know.
func (s *Speaker) Problems() []snapshot.Problem { return *s.problems.Load() }

// Ready returns why the speaker does not announce anything yet, or nil. Where layer 2
// cannot work, BGP sessions are enough. For a while after its start, passwords of these that
// it may not read yet are a reason, too.
func (s *Speaker) Ready() error {
	last := s.lastStep.Load()
	if last.waiting != "" {
		return errors.New(last.waiting)
	}
	if last.unread != "" && time.Since(s.began) < grantedWithin {
		return errors.New(last.unread)
	}
	return nil
}

// driver is the Run of a driver, with a name for errors.
type driver struct {
	name string
	run  func(context.Context) error
}

// drivers are those that can work. A node that cannot answer for an address must not be a
// member: the others would leave it a share of the addresses. It runs nevertheless, so that
// its State says why.
func (s *Speaker) drivers(p *publisher) []driver {
	out := []driver{{"layer 2", s.l2.Run}, {"hearing", s.hearing.run}, {"BGP", s.bgp.Run}, {"BFD", s.bfd.Run}, {"router advertisements", s.links.Run}, {"speaker status", p.run}, {"kube-proxy", s.rules.Run}, {"health of Services", s.health.Run}, {"processors", s.cores.Run}, {"reminders", s.remind}}
	if err := l2.Permitted(); err != nil && s.opts.LAN == nil {
		s.mute = err.Error()
		s.opts.Log.Error("layer 2 announces nothing", "reason", s.mute)
	} else {
		out = append(out, driver{"members", s.members.Run})
	}
	return out
}

// Run announces until ctx ends, then hands its addresses over and returns.
func (s *Speaker) Run(ctx context.Context) error {
	// The drivers run longer than ctx: while addresses are handed over.
	group, drivers := errgroup.WithContext(context.WithoutCancel(ctx))
	drivers, stop := context.WithCancel(drivers)
	p := newPublisher(s.opts)
	for _, d := range s.drivers(p) {
		group.Go(func() error {
			if err := d.run(drivers); err != nil && drivers.Err() == nil {
				return fmt.Errorf("speaker: %s: %w", d.name, err)
			}
			return nil // the speaker stops
		})
	}
	s.loop(ctx, drivers, p)
	s.leaveRouters(drivers)
	stop()
	return group.Wait()
}

// Kinds are the kinds of objects that a Speaker reads.
func Kinds() []snapshot.Kind {
	return []snapshot.Kind{
		snapshot.Service, snapshot.EndpointSlice, snapshot.Node, snapshot.IPAddressPool,
		snapshot.L2Advertisement, snapshot.SpeakerStatus,
		snapshot.BGPAdvertisement, snapshot.BGPPeer, snapshot.Community, snapshot.BFDProfile, snapshot.Secret,
	}
}

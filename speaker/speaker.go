package speaker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
	"quayside.io/speaker/kubeproxy"
	"quayside.io/speaker/l2"
	"quayside.io/speaker/members"
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
	// Solitary is a speaker that is the only one and meets nobody.
	Solitary bool
	// IgnoreExcludeLB lets nodes announce that are labelled
	// node.kubernetes.io/exclude-from-external-load-balancers.
	IgnoreExcludeLB bool
	// ExternalIPs announces what Services list in spec.externalIPs, too.
	ExternalIPs bool
	// HandOverOnCordon hands addresses over as soon as this node is cordoned.
	HandOverOnCordon bool
	// KubeProxy is HOST:PORT where this node's kube-proxy serves its metrics;
	// nothing new is taken before it has written its rules. Empty: not waited for.
	KubeProxy string
	// HandOver bounds how long a polite end waits for the successors; zero: 3 s.
	HandOver time.Duration

	Log        *slog.Logger
	Registerer prometheus.Registerer
}

// Speaker announces the addresses that live on this node.
type Speaker struct {
	opts     Options
	l2       *l2.Announcer
	members  *members.Members // nil: solitary
	rules    *kubeproxy.Watcher
	metrics  *metrics
	state    atomic.Pointer[State]
	problems atomic.Pointer[[]snapshot.Problem]
	tasks    atomic.Int64 // questions to the LAN under way
	mute     string       // why this process may not speak; "" it may
}

// State is what a speaker is doing, for /state and for people.
type State struct {
	Kind string `json:"kind"` // "speaker"
	Node string `json:"node"`
	// Waiting says why nothing is announced yet.
	Waiting    string               `json:"waiting,omitempty"`
	Leaving    bool                 `json:"leaving,omitempty"`
	Announcing []Announced          `json:"announcing"`
	Owners     map[string]string    `json:"owners"`
	Alive      []string             `json:"alive"`
	Missing    map[string]string    `json:"missing,omitempty"`
	Interfaces []announce.Interface `json:"interfaces"`
	Problems   []snapshot.Problem   `json:"problems"`
}

// Announced is one address this node answers for.
type Announced struct {
	Address    string   `json:"address"`
	Services   []string `json:"services"`
	Interfaces []string `json:"interfaces"`
	Epoch      int64    `json:"epoch"`
	HandOver   string   `json:"handOver,omitempty"`
}

// New prepares a speaker that is silent until Run.
func New(opts Options) (*Speaker, error) {
	switch {
	case opts.NodeName == "":
		return nil, errors.New("speaker: the name of this node is missing; set --node-name")
	case opts.MembersKeyFile == "" && !opts.Solitary:
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
		opts: opts, l2: l2.New(l2.Options{Log: opts.Log, Registerer: opts.Registerer}), metrics: newMetrics(opts.Registerer),
		rules: kubeproxy.New(kubeproxy.Options{Address: opts.KubeProxy, Log: opts.Log}),
	}
	if !opts.Solitary {
		m, err := members.New(members.Options{
			NodeName: opts.NodeName, Bind: opts.MembersBind, KeyFile: opts.MembersKeyFile, Profile: opts.Profile,
			Log: opts.Log, Registerer: opts.Registerer,
		})
		if err != nil {
			return nil, fmt.Errorf("speaker: %w", err)
		}
		s.members = m
	}
	s.state.Store(&State{Kind: "speaker", Node: opts.NodeName, Waiting: "speaker is starting"})
	s.problems.Store(&[]snapshot.Problem{})
	return s, nil
}

// State returns what the speaker is doing.
func (s *Speaker) State() any { return s.state.Load() }

// Problems are those of the plan, and those that only this node can know.
func (s *Speaker) Problems() []snapshot.Problem { return *s.problems.Load() }

// Ready says why the speaker does not work yet, or nil.
func (s *Speaker) Ready() error {
	if why := s.state.Load().Waiting; why != "" {
		return errors.New(why)
	}
	return nil
}

// Run speaks until ctx ends; then it hands its addresses over and returns.
func (s *Speaker) Run(ctx context.Context) error {
	// The hands live longer than ctx: they work while addresses move.
	hands, stop := context.WithCancel(context.WithoutCancel(ctx))
	failed := make(chan error, 4)
	running := 0
	start := func(name string, run func(context.Context) error) {
		running++
		go func() {
			err := run(hands)
			if hands.Err() != nil {
				err = nil // it was asked to end
			} else if err != nil {
				err = fmt.Errorf("%s: %w", name, err)
			}
			failed <- err
		}()
	}
	// Who cannot answer for an address must not be a member: the others would
	// leave it its share. It stays, to be asked why.
	if err := l2.Permitted(); err != nil {
		s.mute = err.Error()
		s.opts.Log.Error("speaker announces nothing", "reason", s.mute)
	}
	p := newPublisher(s.opts)
	start("layer 2", s.l2.Run)
	start("speaker status", p.run)
	start("kube-proxy", s.rules.Run)
	if s.members != nil && s.mute == "" {
		start("members", s.members.Run)
	}
	err := s.loop(ctx, hands, p, failed, &running)
	stop()
	for range running {
		err = errors.Join(err, <-failed)
	}
	if err != nil {
		return fmt.Errorf("speaker: %w", err)
	}
	return nil
}

// membersView is what the members know, or what a solitary speaker knows of
// itself.
func (s *Speaker) membersView() *members.View {
	if s.members != nil {
		return s.members.View()
	}
	return &members.View{Alive: map[string]struct{}{s.opts.NodeName: {}}, Settled: true}
}

func (s *Speaker) membersWatch() <-chan struct{} {
	if s.members != nil {
		return s.members.Watch()
	}
	return nil
}

// Kinds are those that a Speaker reads.
func Kinds() []snapshot.Kind {
	return []snapshot.Kind{
		snapshot.Service, snapshot.EndpointSlice, snapshot.Node, snapshot.IPAddressPool,
		snapshot.L2Advertisement, snapshot.BGPAdvertisement, snapshot.SpeakerStatus,
	}
}

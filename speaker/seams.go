package speaker

import (
	"context"
	"crypto/ed25519"
	"net/netip"
	"time"

	"quayside.io/speaker/announce"
	"quayside.io/speaker/l2"
	"quayside.io/speaker/members"
)

// LAN is the part of an l2.Announcer that a speaker uses. Tests of thousands of speakers in
// one process have their own.
type LAN interface {
	Run(ctx context.Context) error
	Set(want *l2.Want)
	Await(want *l2.Want, atMost time.Duration)
	Watch() <-chan struct{}
	Conflicts() <-chan l2.Conflict
	Interfaces() []announce.Interface
	Hazards() []string
	Failures() []string
	Listen(ctx context.Context, questions []l2.Question, timing l2.Timing) (found map[netip.Addr]l2.Found, heard bool, err error)
	Neighbours() ([]l2.Question, error)
}

// Gossip is the part of members.Members that a speaker uses. Tests may have their own.
type Gossip interface {
	Run(ctx context.Context) error
	Set(want *members.Want)
	Watch() <-chan struct{}
	View() *members.View
	SetKeys(keys members.Keys)
	PublicKey() ed25519.PublicKey
	KeyPrints() []string
	Forgeries() map[string]time.Time
	Probe(ctx context.Context, at netip.Addr, timeout time.Duration) members.Liveness
}

var (
	_ LAN    = (*l2.Announcer)(nil)
	_ Gossip = (*members.Members)(nil)
	_ Gossip = solitary{}
)

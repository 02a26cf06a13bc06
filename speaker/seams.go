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

// LAN is what a speaker needs of layer 2: an l2.Announcer, or, where thousands of
// speakers share a process, what stands in for one.
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

// Gossip is what a speaker needs of its members: members.Members, or what stands in.
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
)

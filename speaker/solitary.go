package speaker

import (
	"context"
	"crypto/ed25519"
	"net/netip"
	"time"

	"quayside.io/speaker/members"
)

// solitary is the Gossip of the only speaker there is: it lives, and nobody speaks.
type solitary struct{ view *members.View }

func newSolitary(node string) solitary {
	return solitary{&members.View{Alive: map[string]struct{}{node: {}}, Settled: true}}
}

// Run implements Gossip.
func (solitary) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Set implements Gossip.
func (solitary) Set(*members.Want) {}

// Watch implements Gossip.
func (solitary) Watch() <-chan struct{} { return nil }

// View implements Gossip.
func (s solitary) View() *members.View { return s.view }

// SetKeys implements Gossip.
func (solitary) SetKeys(members.Keys) {}

// PublicKey implements Gossip.
func (solitary) PublicKey() ed25519.PublicKey { return nil }

// KeyPrints implements Gossip.
func (solitary) KeyPrints() []string { return nil }

// Forgeries implements Gossip.
func (solitary) Forgeries() map[string]time.Time { return nil }

// Probe implements Gossip.
func (solitary) Probe(context.Context, netip.Addr, time.Duration) members.Liveness {
	return members.Silent
}

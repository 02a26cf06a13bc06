package proxy

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/cluster/tickets"
	"quayside.io/proxy/balance"
	"quayside.io/proxy/route"
)

// cookieKey is what session cookies are sealed with: the key that all proxies share, or,
// while none was read, one of our own. By that clients stay where they are for as long as
// this proxy lives and they reach no other.
type cookieKey struct {
	secret snapshot.Key
	log    *slog.Logger
	shared atomic.Bool // as opposed to our own
	// The routes loop's alone:
	key  balance.CookieKey
	seen *corev1.Secret
}

func newCookieKey(o Options) *cookieKey {
	k := &cookieKey{secret: o.Tickets, log: o.Log}
	_, _ = rand.Read(k.key[:]) // never fails: it ends the program instead
	return k
}

// read returns the key in force, which is that of c if it has one that can be read.
func (k *cookieKey) read(c *snapshot.Cluster) balance.CookieKey {
	secret, _ := c.Secrets.Get(k.secret)
	if secret == nil || secret == k.seen {
		return k.key
	}
	k.seen = secret
	key, err := tickets.CookieKey(secret.Data)
	if err != nil {
		k.log.Warn("the key of session cookies is of no use, so the one before stays", "secret", k.secret, "shared", k.shared.Load(), "error", err)
		return k.key
	}
	k.key = key
	k.shared.Store(true)
	return k.key
}

// cookieProblems tells of sessions that end with this proxy.
func (p *Proxy) cookieProblems() []snapshot.Problem {
	t, secret := p.table.Load(), p.options.Tickets
	if t == nil || secret == (snapshot.Key{}) || p.cookies.shared.Load() ||
		!slices.ContainsFunc(t.Backends, func(b route.Backend) bool { return b.Policy.Cookie.Name != "" }) {
		return nil
	}
	return []snapshot.Problem{{
		Object: snapshot.Ref{Kind: snapshot.Secret.String(), Key: secret}, Reason: "NoCookieKey",
		Message: fmt.Sprintf("session cookies (affinity: cookie) bind at this proxy only, and until it restarts: the Secret %s has no key of cookies that could be read; a controller makes one, from files give it 32 random bytes in base64 as stringData.cookies", secret),
	}}
}

package proxy

import (
	"context"
	"time"

	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/route"
)

// referPatience bounds how long a new table waits for the Secrets that it names
// and nothing named before. Whatever it needs more than that long, such as an
// API server that is away, must not hold up the others.
const referPatience = time.Second

// compile returns the table after old, and sees to it that the Secrets and ConfigMaps
// which it names are watched. A table that names new ones is compiled again once they are
// known: it would serve the wrong certificate until then. The very first waits for as
// long as it takes, since nothing is served yet.
func (p *Proxy) compile(ctx context.Context, old *route.Table) *route.Table {
	t := p.compileNow(old)
	if t.SameReferences(old) {
		return t
	}
	secrets, configMaps := p.options.Source.Refer(snapshot.Secret, p.secretsOf(t.Secrets())), p.options.Source.Refer(snapshot.ConfigMap, t.ConfigMaps())
	if cluster.IsClosed(secrets) && cluster.IsClosed(configMaps) {
		return t // everything is known anyway
	}
	patient := ctx
	if old != nil {
		var enough context.CancelFunc
		patient, enough = context.WithTimeout(ctx, referPatience)
		defer enough()
	}
	for _, seen := range []<-chan struct{}{secrets, configMaps} {
		select {
		case <-seen:
		case <-patient.Done():
		}
	}
	return p.compileNow(old)
}

func (p *Proxy) compileNow(old *route.Table) *route.Table {
	options := p.options.Routes
	options.FallbackCertificate, options.Now = p.fallback, time.Now()
	c := p.options.Source.Snapshot()
	options.CookieKey = p.cookies.read(c)
	return route.Compile(c, old, options)
}

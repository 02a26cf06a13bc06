package proxy

import (
	"context"
	"time"

	"quayside.io/proxy/route"
)

// referPatience bounds how long a new table waits for the objects that it names
// and nothing named before. Whatever it needs more than that long, such as an
// API server that is away, must not hold up the others.
const referPatience = time.Second

// compile returns the table after old, and sees to it that the Secrets and
// ConfigMaps which it names are watched. A table that names new ones is compiled again once they are
// known: it would serve the wrong certificate until then. The very first waits
// for as long as it takes, since nothing is served yet.
func (p *Proxy) compile(ctx context.Context, old *route.Table) *route.Table {
	t := p.compileNow(old)
	if t.SameReferences(old) {
		return t
	}
	seen := p.refer(t)
	if len(seen) == 0 {
		return t // everything is known anyway
	}
	var enough <-chan time.Time
	if old != nil {
		patience := time.NewTimer(referPatience)
		defer patience.Stop()
		enough = patience.C
	}
	for _, known := range seen {
		select {
		case <-known:
			continue
		case <-enough:
		case <-ctx.Done():
		}
		break
	}
	return p.compileNow(old)
}

// refer declares what t names, and returns a channel for each kind of which some
// objects are not known yet.
func (p *Proxy) refer(t *route.Table) (seen []<-chan struct{}) {
	for _, kind := range route.Referenced() {
		known := p.options.Source.Refer(kind, t.References(kind))
		select {
		case <-known:
		default:
			seen = append(seen, known)
		}
	}
	return seen
}

func (p *Proxy) compileNow(old *route.Table) *route.Table {
	options := p.options.Routes
	options.FallbackCertificate, options.Now = p.fallback, time.Now()
	return route.Compile(p.options.Source.Snapshot(), old, options)
}

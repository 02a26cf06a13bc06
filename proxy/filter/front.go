package filter

import (
	"net/netip"
	"regexp"

	"go4.org/netipx"

	"quayside.io/proxy/accesslog"
	"quayside.io/proxy/exchange"
)

// Front is what holds for all requests, whatever their route. The zero value asks
// for nothing and believes nobody. It is immutable.
type Front struct {
	// Trusted are proxies whose X-Forwarded-* is believed, beside those that the
	// process was started with.
	Trusted []netip.Prefix
	// KeepHost has trusted proxies say in X-Forwarded-Host what that field says, and not
	// which host upstreams are asked for.
	KeepHost bool
	// ForwardedFor is the field in which trusted proxies name the client; empty:
	// X-Forwarded-For.
	ForwardedFor string
	// BlockCIDRs, BlockAgents and BlockReferers refuse requests with 403: by the
	// client's address, and by the fields User-Agent and Referer.
	BlockCIDRs                 []netip.Prefix
	BlockAgents, BlockReferers Patterns
	// NoRequestID leaves requests without an X-Request-ID that come without.
	NoRequestID bool
	// Log is what the access log is to say.
	Log Log
}

// Log is what all requests have in common for the access log.
type Log struct {
	// Off: there is none.
	Off bool
	// Format, unless nil, replaces that of the process.
	Format *accesslog.Format
	// Skip are the targets that are not logged.
	Skip Patterns
	// Keep, unless nil, reports whether a request is logged that has ended. It is called by
	// many goroutines.
	Keep func(r *accesslog.Record) bool
}

// Patterns are several of which one must match.
type Patterns []Pattern

// Match reports whether one does.
func (p Patterns) Match(value []byte) bool {
	for i := range p {
		if p[i].matches(value) {
			return true
		}
	}
	return false
}

// Pattern is a whole value in any letter case, or a regular expression.
type Pattern struct {
	Text   string
	Regexp *regexp.Regexp // nil: Text
}

func (p *Pattern) matches(value []byte) bool {
	if p.Regexp != nil {
		return p.Regexp.Match(value)
	}
	return exchange.EqualFold(value, p.Text)
}

// Chain returns the filters that f asks for, nil for none. They look at the
// client, so Forwarded comes before them.
func (f *Front) Chain() Chain {
	if f == nil || len(f.BlockCIDRs) == 0 && len(f.BlockAgents) == 0 && len(f.BlockReferers) == 0 {
		return nil
	}
	b := &blocker{Front: *f, clients: setOf(f.BlockCIDRs)}
	return Chain{{Request: b.request}}
}

type blocker struct {
	Front
	clients *netipx.IPSet
}

func (b *blocker) request(ex *exchange.Exchange) bool {
	r := &ex.Request
	if b.clients.Contains(r.Client.Addr()) || anyMatches(b.BlockAgents, &r.Header, "User-Agent") ||
		anyMatches(b.BlockReferers, &r.Header, "Referer") {
		ex.Answer(403, "403 Forbidden: this proxy does not serve the client\n")
		return false
	}
	return true
}

func anyMatches(patterns Patterns, h *exchange.Header, name string) bool {
	if len(patterns) == 0 {
		return false
	}
	value := h.Get(name)
	if value == nil {
		value = []byte{} // an empty pattern blocks who does not say
	}
	return patterns.Match(value)
}

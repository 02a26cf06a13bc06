//go:build !portable

package serve_test

import (
	"net/netip"
	"regexp"
	"testing"

	"quayside.io/proxy/filter"
	"quayside.io/proxy/serve"
	"quayside.io/proxy/upstream"
)

// A request that is proxied whole costs no allocation, fasthttp's part included.
func TestProxyingAllocatesNothing(t *testing.T) {
	if racing {
		t.Skip("sync.Pool drops things at random under the race detector")
	}
	r := newRig(t, serve.Options{}, upstream.Options{}, answering(t, smallAnswer))
	ask := client(t, r)
	for range 20 {
		ask()
	}
	if n := testing.AllocsPerRun(500, ask); n != 0 {
		t.Errorf("%v allocations per request, want none", n)
	}
}

// Options that only look at the exchange cost a proxied request no allocation.
func TestProxyingWithOptionsAllocatesNothing(t *testing.T) {
	if racing {
		t.Skip("sync.Pool drops things at random under the race detector")
	}
	r := newRig(t, serve.Options{}, upstream.Options{}, answering(t, smallAnswer))
	r.filter(&filter.Settings{
		MaxBody: 1 << 20, AppRoot: target("/app"), UpstreamHost: text("inner"), ForwardedPrefix: text("/p"),
		CORS:    &filter.CORS{Origins: []string{"*"}, Methods: "GET"},
		Limits:  &filter.Limits{PerSecond: 1_000_000, Connections: 100},
		Access:  &filter.Access{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		Headers: []filter.Field{{Name: "X-A", Value: text("1")}},
		Rewrite: &filter.Rewrite{Pattern: regexp.MustCompile("^/a/"), Target: text("/new")},
	})
	ask := client(t, r)
	for range 20 {
		ask()
	}
	if n := testing.AllocsPerRun(500, ask); n != 0 {
		t.Errorf("%v allocations per request, want none", n)
	}
}

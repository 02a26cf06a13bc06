package filter

import (
	"net/netip"
	"testing"

	"quayside.io/proxy/exchange"
)

// A request's own name is passed on, and another made only where that is wanted.
func TestRequestID(t *testing.T) {
	made := NewForwarded(nil)
	for _, c := range []struct {
		f        *Forwarded
		came, is string
	}{
		{made, "client-1", "client-1"},
		{made, "", "00000000000000010000000000000002"},
		{made, "a\"b", "00000000000000010000000000000002"},
		{made.With(&Front{NoRequestID: true}), "client-1", "client-1"},
		{made.With(&Front{NoRequestID: true}), "", ""},
	} {
		var ex exchange.Exchange
		if c.came != "" {
			ex.Request.Header.Add("X-Request-Id", c.came)
		}
		c.f.Apply(&ex, Connection{Peer: netip.MustParseAddr("192.0.2.1")}, [2]uint64{1, 2})
		if got := string(ex.Request.Header.Get("X-Request-ID")); got != c.is {
			t.Errorf("%q became %q, want %q", c.came, got, c.is)
		}
	}
}

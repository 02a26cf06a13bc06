package proxyheader

import (
	"bufio"
	"bytes"
	"net/netip"
	"testing"

	"github.com/pires/go-proxyproto"
)

// What is written is what another implementation reads.
func TestProxyHeader(t *testing.T) {
	for _, c := range []struct{ client, local, from, to string }{
		{"192.0.2.1:1234", "192.0.2.2:443", "192.0.2.1:1234", "192.0.2.2:443"},
		{"[2001:db8::1]:1234", "[2001:db8::2]:443", "[2001:db8::1]:1234", "[2001:db8::2]:443"},
		{"[::ffff:192.0.2.1]:1234", "192.0.2.2:443", "192.0.2.1:1234", "192.0.2.2:443"},
		{"[2001:db8::1]:1234", "192.0.2.2:443", "[2001:db8::1]:1234", "192.0.2.2:443"},
	} {
		for version := range 3 {
			b := Append(nil, version, netip.MustParseAddrPort(c.client), netip.MustParseAddrPort(c.local))
			if version == 0 {
				if len(b) > 0 {
					t.Errorf("%q where none is asked for", b)
				}
				continue
			}
			rest := bufio.NewReader(bytes.NewReader(append(b, "hello"...)))
			h, err := proxyproto.Read(rest)
			if err != nil {
				t.Errorf("%q: %v", b, err)
				continue
			}
			if int(h.Version) != version || h.SourceAddr.String() != c.from || h.DestinationAddr.String() != c.to {
				t.Errorf("%q: version %d from %v to %v", b, h.Version, h.SourceAddr, h.DestinationAddr)
			}
			if more, _ := rest.Peek(5); string(more) != "hello" {
				t.Errorf("%q takes part of what follows", b)
			}
		}
	}
	unknown := Append(nil, 2, netip.AddrPort{}, netip.AddrPort{})
	if h, err := proxyproto.Read(bufio.NewReader(bytes.NewReader(unknown))); err != nil || h.Command != proxyproto.LOCAL {
		t.Errorf("of nobody: %v, %v", h, err)
	}
}

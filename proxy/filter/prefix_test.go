package filter

import (
	"net/netip"
	"testing"
)

func TestParsePrefix(t *testing.T) {
	for text, want := range map[string]string{
		"10.1.2.3/8": "10.0.0.0/8", "10.1.2.3": "10.1.2.3/32", "2001:db8::1/32": "2001:db8::/32", "::1": "::1/128",
		"::ffff:10.1.2.3/104": "10.0.0.0/8", "::ffff:10.1.2.3": "10.1.2.3/32", "::ffff:0:0/90": "::ffc0:0:0/90",
		"": "", "10.0.0.0/33": "", "fe80::1%eth0": "", "fe80::1%eth0/64": "", "name": "", "10.0.0.1/08": "", " 10.0.0.1": "",
	} {
		prefix, ok := ParsePrefix(text)
		switch {
		case ok != (want != ""):
			t.Errorf("%q: %v %v", text, prefix, ok)
		case ok && (Unmapped(prefix).String() != want || prefix != prefix.Masked()):
			t.Errorf("%q: %v, which is %v, want %s", text, prefix, Unmapped(prefix), want)
		case ok && !isIn([]netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), prefix}, prefix.Addr()):
			t.Errorf("%q: its address is not in it", text)
		}
	}
}

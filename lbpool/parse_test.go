package lbpool_test

import (
	"net/netip"
	"strings"
	"testing"

	"quayside.io/lbpool"
)

func TestParseRange(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.0/24":              "10.0.0.0-10.0.0.255",
		"10.0.0.77/24":             "10.0.0.0-10.0.0.255",
		" 10.0.0.7/32 ":            "10.0.0.7-10.0.0.7",
		"10.0.0.10-10.0.0.20":      "10.0.0.10-10.0.0.20",
		"10.0.0.10 - 10.0.0.20":    "10.0.0.10-10.0.0.20",
		"2001:db8::/126":           "2001:db8::-2001:db8::3",
		"2001:db8::f-2001:db8::1f": "2001:db8::f-2001:db8::1f",
		"127.0.10.0/24":            "127.0.10.0-127.0.10.255",
		"fc00:f853:ccd:e799::/124": "fc00:f853:ccd:e799::-fc00:f853:ccd:e799::f",
	} {
		got, err := lbpool.ParseRange(text)
		if err != nil || got.String() != want {
			t.Errorf("%q: %v, %v; wanted %s", text, got, err, want)
		}
	}
}

// A refusal says what is wrong in words that lead to the remedy.
func TestParseRangeRefuses(t *testing.T) {
	for text, why := range map[string]string{
		"":                          "neither a prefix",
		"10.0.0.1":                  "neither a prefix",
		"10.0.0.0/33":               "neither a prefix",
		"10.0.0.0/":                 "neither a prefix",
		"10.0.0.01-10.0.0.7":        "not an IP address",
		"10.0.0.20-10.0.0.10":       "write 10.0.0.10-10.0.0.20",
		"10.0.0.1-2001:db8::1":      "one range per family",
		"10.0.0.1-10.0.0.5-7":       "not an IP address",
		"::ffff:10.0.0.1/120":       "write it as IPv4",
		"::ffff:10.0.0.1-10.0.0.2":  "write 10.0.0.1",
		"fe80::1%eth0-fe80::2%eth0": "zone",
		"224.0.0.0/24":              "multicast",
		"223.255.255.0-224.0.0.1":   "multicast",
		"0.0.0.0/0":                 "this network",
		"255.255.255.255/32":        "broadcast",
		"ff02::/16":                 "multicast",
		"::/64":                     "no address",
	} {
		if got, err := lbpool.ParseRange(text); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, %v; wanted a refusal with %q", text, got, err, why)
		}
	}
}

func TestParseReservedTakesSingleAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.7":          "10.0.0.7-10.0.0.7",
		"2001:db8::7":       "2001:db8::7-2001:db8::7",
		"10.0.0.0/31":       "10.0.0.0-10.0.0.1",
		"10.0.0.1-10.0.0.3": "10.0.0.1-10.0.0.3",
	} {
		got, err := lbpool.ParseReserved(text)
		if err != nil || got.String() != want {
			t.Errorf("%q: %v, %v; wanted %s", text, got, err, want)
		}
	}
}

// FuzzParseRange: whatever is accepted is a range of one family, from low to
// high, that reads back as itself.
func FuzzParseRange(f *testing.F) {
	for _, seed := range []string{
		"10.0.0.0/24", "10.0.0.10-10.0.0.20", "2001:db8::/64", "2001:db8::1-2001:db8::ff", "10.0.0.1-2001:db8::1",
		"0.0.0.0/0", "::/0", "::ffff:1.2.3.4/120", "fe80::1%eth0-fe80::2", "-", "/", "1.2.3.4-", "255.255.255.255/32", "10.0.0.0/8-",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := lbpool.ParseRange(text)
		if err != nil {
			return
		}
		if !r.IsValid() || r.To().Less(r.From()) || r.From().BitLen() != r.To().BitLen() || r.From().Zone() != "" || r.From().Is4In6() {
			t.Fatalf("%q was accepted as %v", text, r)
		}
		again, err := lbpool.ParseRange(r.String())
		if err != nil || again != r {
			t.Fatalf("%q reads as %v, which reads as %v, %v", text, r, again, err)
		}
		if r.Contains(netip.MustParseAddr("224.0.0.1")) || r.Contains(netip.MustParseAddr("ff02::1")) {
			t.Fatalf("%q contains multicast", text)
		}
	})
}

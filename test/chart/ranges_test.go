package chart

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"quayside.io/lbpool"
)

// TestRangesMeanTheSame holds two readers of one string together: the CRD's
// rules, which the API server asks, and lbpool, which everyone else asks. What
// lbpool takes the server takes, and what the server takes lbpool refuses only
// for what CEL cannot see: the order of two addresses, and which are assignable.
func TestRangesMeanTheSame(t *testing.T) {
	srv := newServer(t)
	address := rapid.SampledFrom([]string{
		"10.0.0.1", "10.0.0.20", "010.0.0.1", "10.0.0", "10.0.0.256", "0.0.0.0", "255.255.255.255", "224.0.0.1",
		"fc00::1", "fc00::ffff", "fe80::1%eth0", "::ffff:10.0.0.1", "::", "FC00::A", "fc00:::1", "router", "",
	})
	length := rapid.SampledFrom([]string{"/0", "/8", "/24", "/32", "/33", "/64", "/128", "/129", "/-1", "/08", "/", ""})
	space := rapid.SampledFrom([]string{"", "", "", " ", "\t"})
	one := rapid.Custom(func(t *rapid.T) string {
		s := space.Draw(t, "before") + address.Draw(t, "address") + length.Draw(t, "length") + space.Draw(t, "after")
		if rapid.Bool().Draw(t, "range") {
			s += "-" + space.Draw(t, "before") + address.Draw(t, "to") + space.Draw(t, "after")
		}
		if rapid.IntRange(0, 20).Draw(t, "twice") == 0 {
			s += "-" + address.Draw(t, "and")
		}
		return s
	})
	rapid.Check(t, func(t *rapid.T) {
		s := one.Draw(t, "s")
		for _, field := range []string{"addresses", "reserved"} {
			parse := lbpool.ParseRange
			spec := map[string]any{"addresses": []any{s}}
			if field == "reserved" {
				parse = lbpool.ParseReserved
				spec = map[string]any{"addresses": []any{"10.0.0.0/24"}, "reserved": []any{s}}
			}
			_, err := parse(s)
			messages := srv.judge(t.Context(), "IPAddressPool", map[string]any{
				"apiVersion": "quayside.io/v1alpha1", "kind": "IPAddressPool", "metadata": map[string]any{"name": "p"}, "spec": spec,
			})
			switch {
			case err == nil && len(messages) > 0:
				t.Fatalf("%s %q: lbpool takes it, the server refuses: %q", field, s, messages)
			case err != nil && len(messages) == 0 &&
				!strings.Contains(err.Error(), "ends before it begins") && !strings.Contains(err.Error(), "no Service can have"):
				t.Fatalf("%s %q: the server takes it, lbpool refuses: %v", field, s, err)
			}
		}
	})
}

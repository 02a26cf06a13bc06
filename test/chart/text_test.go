package chart

import (
	"slices"
	"testing"
)

// TestTextIsTaken: what a value says reaches the process as it is, whatever YAML makes of
// a colon, and a number as digits, though Helm reads 1000000 as 1e+06.
func TestTextIsTaken(t *testing.T) {
	for name, want := range map[string]map[string]string{
		"own log": {"proxy": `--access-log={"from": "$remote_addr", "status": $status} # $uri`},
		"large":   {"proxy": "--metrics-hosts=2000000", "speaker": "--watch-nodes-up-to=1000000"},
	} {
		all := workloads(t, variants()[name])
		for component, arg := range want {
			if args := start(t, all[component]).Args; !slices.Contains(args, arg) {
				t.Errorf("%s: %s is not started with %s, but with %q", name, component, arg, args)
			}
		}
	}
	all := workloads(t, `{controller: {publishAddresses: ["2001:db8::"]}, proxy: {trustedProxies: [10.0.0.1, "2001:db8::"]}}`)
	for component, arg := range map[string]string{"controller": "--publish-address=2001:db8::", "proxy": "--trusted-proxies=10.0.0.1,2001:db8::"} {
		if args := start(t, all[component]).Args; !slices.Contains(args, arg) {
			t.Errorf("%s is not started with %s, but with %q", component, arg, args)
		}
	}
	if args := start(t, workloads(t, variants()["large"])["proxy"]).Args; !slices.Contains(args, "--body-files-size=10737418240") {
		t.Errorf("proxy: %q", args)
	}
}

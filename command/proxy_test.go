package command

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"quayside.io/cluster"
	"quayside.io/cluster/manifest"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
)

func TestLameDuck(t *testing.T) {
	for _, c := range []struct {
		name, apiHost string
		grace, want   time.Duration
	}{
		{"in a pod", "10.96.0.1", 30 * time.Second, 5 * time.Second},
		{"in a pod that has little time", "fd00::1", 4 * time.Second, 2 * time.Second},
		{"on a machine", "", 30 * time.Second, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(apiHost, c.apiHost)
			if got := lameDuck(c.grace); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// A proxy that nobody leads connections to ends when it is asked to.
func TestProxyOutsideAPodEndsAtOnce(t *testing.T) {
	t.Setenv(apiHost, "")
	_, kubeconfig := startAPI(t, classlessYAML)
	var asked time.Time
	t.Run("serving", func(t *testing.T) {
		at := freeAddress(t)
		start(t, "proxy", "--kubeconfig", kubeconfig, "--node-name=a", "--namespace=edge", "--secret-access=Cluster", "--http", at, "--https=", "--admin", freeAddress(t))
		eventually(t, at, "else.com", "/", 503, "")
		asked = time.Now()
	})
	if took := time.Since(asked); took >= 5*time.Second {
		t.Errorf("it took %v to end", took)
	}
}

// Proxies know each other by the slices of their own Services, which name each of them once
// for each family of addresses, ready or not.
func TestProxiesCountEachOther(t *testing.T) {
	slices := manifest.Decode("slices", []byte(`{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: v4, namespace: edge, labels: {app.kubernetes.io/component: proxy}}, addressType: IPv4, endpoints: [{addresses: [10.0.0.1]}, {addresses: [10.0.0.2], conditions: {ready: false}}]}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: internal, namespace: edge, labels: {app.kubernetes.io/component: proxy}}, addressType: IPv4, endpoints: [{addresses: [10.0.0.1]}, {addresses: [10.0.0.3]}]}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: v6, namespace: edge, labels: {app.kubernetes.io/component: proxy}}, addressType: IPv6, endpoints: [{addresses: ["fd00::1"]}, {addresses: ["fd00::2"]}]}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: other, namespace: edge, labels: {app.kubernetes.io/component: controller}}, addressType: IPv4, endpoints: [{addresses: [10.0.0.4]}]}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: away, namespace: team, labels: {app.kubernetes.io/component: proxy}}, addressType: IPv4, endpoints: [{addresses: [10.0.0.5]}]}
`)).Objects
	if got := proxiesIn(snapshot.Of(slices...), "edge"); got != 3 || len(slices) != 5 {
		t.Errorf("%d proxies of %d slices, want 3", got, len(slices))
	}
}

// TestTrustedProxies: who names one machine means that one, of either family.
func TestTrustedProxies(t *testing.T) {
	got, err := parseTrusted([]string{"10.0.0.0/8", " 10.1.2.3", "fd00::7", "::ffff:192.0.2.1", "fd00::/8", "::ffff:192.0.2.0/120"})
	if want := "[10.0.0.0/8 10.1.2.3/32 fd00::7/128 192.0.2.1/32 fd00::/8 192.0.2.0/24]"; err != nil || fmt.Sprint(got) != want {
		t.Errorf("%v, %v; want %s", got, err, want)
	}
	for _, bad := range []string{"everyone", "10.0.0.0/33", ""} {
		if got, err := parseTrusted([]string{bad}); !errors.Is(err, errBadInput) {
			t.Errorf("%q: %v, %v", bad, got, err)
		}
	}
}

// TestWaitingFor: whoever starts a proxy that lacks a database is told so at once.
func TestWaitingFor(t *testing.T) {
	e := &env{stdout: io.Discard, stderr: io.Discard, logLevel: "error", logFormat: "text"}
	p, err := e.process()
	if err != nil {
		t.Fatal(err)
	}
	files, err := cluster.NewFiles(nil, nil, cluster.FilesOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var f proxyFlags
	flags := pflag.NewFlagSet("proxy", pflag.ContinueOnError)
	f.add(flags, detailFull)
	if err := flags.Parse([]string{"--maxmind-edition-ids=GeoLite2-Country", "--geoip-dir=" + t.TempDir(), "--access-log=$geoip2_country_code"}); err != nil {
		t.Fatal(err)
	}
	o, err := f.options(files.Source, p, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	front, err := proxy.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if said := waitingFor(front); !strings.Contains(said, "GeoLite2-Country.mmdb is not in ") {
		t.Errorf("it says %q", said)
	}
}

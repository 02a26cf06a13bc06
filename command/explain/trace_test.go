package explain

import (
	"bytes"
	"errors"
	"flag"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"quayside.io/cluster/snapshot"
	"quayside.io/controller/assign"
	"quayside.io/proxy/route"
	"quayside.io/speaker/announce"
	"quayside.io/test/scenario"
)

var update = flag.Bool("update", false, "write the outcomes into the files")

// Each file is a cluster, the targets to trace, and what a person reads.
func TestTraces(t *testing.T) {
	scenario.Run(t, "testdata/trace", *update, func(t *testing.T) scenario.Play {
		return func(c *snapshot.Cluster, now time.Time, settings map[string]string) (*snapshot.Cluster, string) {
			var out bytes.Buffer
			for target := range strings.FieldsSeq(settings["trace"]) {
				to, err := ParseTarget(target)
				if err != nil {
					t.Fatal(err)
				}
				if err := Trace(inputsOf(c, now, settings["embedded"] == "true", settings["external"] == "true"), to).WriteText(&out); err != nil {
					t.Fatal(err)
				}
			}
			return c, out.String()
		}
	})
}

// What README.md shows is what is printed.
func TestReadmeShowsATrace(t *testing.T) {
	scenario, err := os.ReadFile("testdata/trace/readme.yaml")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, printed, _ := strings.Cut(string(scenario), "---- expect\n")
	if !strings.Contains(string(readme), "$ quayside trace http://shop.example.com/cart\n"+printed+"```") {
		t.Errorf("README.md does not show\n%s", printed)
	}
}

func inputsOf(c *snapshot.Cluster, now time.Time, embedded, external bool) Inputs {
	s := Inputs{Cluster: c, Embedded: embedded, Node: "here", Assign: assign.Options{DefaultLoadBalancer: true}, Now: now, Routes: route.Compile(c, nil, route.Options{Now: now})}
	s.Problems = append(s.Problems, assign.Compile(c, nil, nil, now, assign.Options{DefaultLoadBalancer: true, ExternalIPs: external}).Problems...)
	s.Problems = append(s.Problems, announce.Compile(c, "", announce.ViewOf(c), now, announce.Options{ExternalIPs: external}).Problems...)
	s.Problems = append(s.Problems, s.Routes.Problems...)
	return s
}

func TestBadTargetsAreRefused(t *testing.T) {
	for _, target := range []string{
		"", "web", "service/web", "service//web", "service/a/b/c", "ftp://a/b", "http://", "http://a/%zz", "http:///x",
		"http://a/../../x%00", "10.0.0", "::g", "https://[::1", "10.0.0.1:", "10.0.0.1:0", "10.0.0.1:65536", "10.0.0.1:53/", "10.0.0.1:53/icmp", "10.0.0.1:53/udp/", "[::1]:53/tcp/x",
	} {
		if _, err := ParseTarget(target); !errors.Is(err, errTarget) {
			t.Errorf("%q: error %v, want errTarget", target, err)
		}
	}
}

func TestAMessageMentionsWholeAddresses(t *testing.T) {
	for message, want := range map[string]bool{
		"status holds 10.0.0.1, which no pool contains":  true,
		"no node can announce 10.0.0.1: n1 is not ready": true,
		"10.0.0.1 is not announced":                      true,
		"no node can announce 10.0.0.10: no interface":   false,
		"n1: no interface in 10.0.0.1/32":                false,
		"110.0.0.1 is not announced":                     false,
	} {
		if got := mentions(message, netip.MustParseAddr("10.0.0.1")); got != want {
			t.Errorf("%q: %v", message, got)
		}
	}
}

// FuzzTrace asks for anything in any cluster: no panic, and every path has a
// link.
func FuzzTrace(f *testing.F) {
	for _, name := range []string{"service", "ingress", "broken", "shared", "silence", "external"} {
		text, err := os.ReadFile("testdata/trace/" + name + ".yaml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text), "http://shop.example.com/")
		f.Add(string(text), "10.0.0.5")
		f.Add(string(text), "10.0.0.1:53/udp")
		f.Add(string(text), "service/shop/web")
	}
	f.Fuzz(func(t *testing.T, objects, target string) {
		to, err := ParseTarget(target)
		if err != nil {
			return
		}
		c := snapshot.Of(scenario.Objects(objects)...)
		if path := Trace(inputsOf(c, time.Unix(0, 0), len(target)%2 == 0, len(target)%3 == 0), to); len(path.Links) == 0 {
			t.Errorf("%q has no link", target)
		}
	})
}

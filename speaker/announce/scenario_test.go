package announce

import (
	"flag"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/yaml"

	"quayside.io/cluster/manifest"
	"quayside.io/cluster/snapshot"
)

// A scenario is a file: manifests, one of them of the kind View, which says what
// gossip and the LAN say; then a line of dashes; then what every live node
// makes of it. `go test -update` writes the last part.

// scenarioView is the View as a person writes it.
type scenarioView struct {
	Alive   []string            `json:"alive"`
	Claims  map[string]string   `json:"claims"` // address: "epoch node"
	Links   map[string][]string `json:"links"`  // node: "eth0 10.0.0.1/24 [via …] [route …] [down] [deaf]"
	Leaving []string            `json:"leaving"`
	Behind  []string            `json:"behind"`
	Refused map[string]string   `json:"refused"` // address: MAC of a stranger, or "member n2"
	Cut     []string            `json:"cut"`     // addresses that were without a link
	Served  []string            `json:"served"`  // Services in default that have endpoints, no matter where

	Remembered []string `json:"remembered"` // addresses that had no Service

	ExternalIPs      bool   `json:"externalIPs"`      // the flag
	Namespace        string `json:"namespace"`        // of Quayside
	HandOverOnCordon bool   `json:"handOverOnCordon"` // the flag, of every speaker
}

const dashes = "\n----------\n"

func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d scenarios, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			input, want, _ := strings.Cut(string(b), dashes)
			got := runScenario(t, file, input)
			if *update {
				if err := os.WriteFile(file, []byte(input+dashes+got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

var update = flag.Bool("update", false, "write what scenarios give as what they expect")

func runScenario(t *testing.T, file, input string) string {
	var objects []snapshot.Object
	var view View
	var opts Options
	var onCordon bool
	for _, doc := range strings.Split(input, "\n---\n") {
		if strings.Contains(doc, "kind: View\n") {
			var served []snapshot.Object
			view, opts, onCordon, served = readView(t, doc)
			objects = append(objects, served...)
			continue
		}
		r := manifest.Decode(file, []byte(doc))
		for _, f := range r.Errors {
			t.Fatal(f)
		}
		objects = append(objects, r.Objects...)
	}
	c := snapshot.Of(objects...)
	for name, f := range view.Facts {
		f.Drained = Drained(c, name, onCordon) // as its speaker would say
		view.Facts[name] = f
	}
	var out strings.Builder
	shown := map[snapshot.Problem]bool{}
	for i, me := range slices.Sorted(maps.Keys(view.Alive)) {
		p := Compile(c, me, view, epoch0(), opts)
		if i == 0 {
			for a, owner := range p.L2.Owners.All() {
				fmt.Fprintf(&out, "%s belongs to %q\n", a, owner)
			}
		}
		heard := p.LocalProblems()
		told := slices.DeleteFunc(slices.Clone(p.Problems), func(p snapshot.Problem) bool { return slices.Contains(heard, p) })
		if leader := Compile(c, "", view, epoch0(), opts); !slices.Equal(leader.Problems, told) {
			t.Errorf("%s finds other problems than the leader:\n%v\n%v", me, told, leader.Problems)
		}
		for _, problem := range p.Problems {
			if !shown[problem] {
				shown[problem] = true
				fmt.Fprintln(&out, problem)
			}
		}
		for _, a := range slices.SortedFunc(maps.Keys(p.L2.Answers), netip.Addr.Compare) {
			answer := p.L2.Answers[a]
			fmt.Fprintf(&out, "%s answers for %s on %v, epoch %d, for %v", me, a, answer.Interfaces, answer.Epoch, answer.Services)
			if answer.Preference != "" {
				fmt.Fprintf(&out, ", preference %s", answer.Preference)
			}
			if answer.HandOver != "" {
				fmt.Fprintf(&out, ", until %s does", answer.HandOver)
			}
			if answer.Awaits {
				fmt.Fprint(&out, ", and awaits a node that can")
			}
			fmt.Fprintln(&out)
		}
		for _, take := range p.L2.Take {
			fmt.Fprintf(&out, "%s takes %s on %v, epoch %d, from %q (%s)\n", me, take.Address, take.Interfaces, take.Epoch, take.From, take.Cause)
		}
		for _, take := range p.L2.Barred {
			fmt.Fprintf(&out, "%s may not take %s\n", me, take.Address)
		}
		printBGP(&out, me, &p.BGP)
		if !p.NextWake.IsZero() {
			fmt.Fprintf(&out, "%s looks again in %v\n", me, p.NextWake.Sub(epoch0()))
		}
		checkReach(t, ReachOf(c, view, epoch0(), opts), me, p)
	}
	return out.String()
}

func readView(t *testing.T, doc string) (v View, opts Options, onCordon bool, served []snapshot.Object) {
	var s scenarioView
	if err := yaml.UnmarshalStrict([]byte(strings.Replace(doc, "kind: View\n", "", 1)), &s); err != nil {
		t.Fatal(err)
	}
	v = View{Alive: map[string]struct{}{}, Claims: map[netip.Addr]Claim{}, Facts: map[string]Facts{}, Refused: map[netip.Addr]Refusal{}}
	for _, n := range s.Alive {
		v.Alive[n] = struct{}{}
	}
	for a, text := range s.Claims {
		var c Claim
		if _, err := fmt.Sscan(text, &c.Epoch, &c.Node); err != nil {
			t.Fatal(err)
		}
		v.Claims[netip.MustParseAddr(a)] = c
	}
	for node, links := range s.Links {
		f := Facts{Interfaces: []Interface{}, Leaving: slices.Contains(s.Leaving, node), Behind: slices.Contains(s.Behind, node)}
		for _, text := range links {
			f.Interfaces = append(f.Interfaces, readLink(text))
		}
		v.Facts[node] = f
	}
	for a, text := range s.Refused {
		r := Refusal{MAC: text}
		if node, ok := strings.CutPrefix(text, "member "); ok {
			r.Node = node
		}
		v.Refused[netip.MustParseAddr(a)] = r
	}
	v.Remembered = map[netip.Addr]struct{}{}
	for _, a := range s.Remembered {
		v.Remembered[netip.MustParseAddr(a)] = struct{}{}
	}
	v.Cut = map[netip.Addr]struct{}{}
	for _, a := range s.Cut {
		v.Cut[netip.MustParseAddr(a)] = struct{}{}
	}
	for _, name := range s.Served {
		served = append(served, servedBy(name)...)
	}
	return v, Options{ExternalIPs: s.ExternalIPs, Namespace: s.Namespace}, s.HandOverOnCordon, served
}

// servedBy are EndpointSlices of a Service, one of each family, with one ready endpoint, on a
// node that no test has.
func servedBy(service string) (list []snapshot.Object) {
	for _, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
		list = append(list, slice(service+string(family), service, family, endpoint("elsewhere", "ready")))
	}
	return list
}

func readLink(text string) Interface {
	words := strings.Fields(text)
	link := Interface{Name: words[0], Up: true}
	for i := 1; i < len(words); i++ {
		switch words[i] {
		case "down":
			link.Up = false
		case "deaf":
			link.Deaf = true
		case "via":
			i++
			link.Gateways = append(link.Gateways, netip.MustParseAddr(words[i]))
		case "route":
			i++
			link.Routes = append(link.Routes, netip.MustParsePrefix(words[i]))
		default:
			link.Prefixes = append(link.Prefixes, netip.MustParsePrefix(words[i]))
		}
	}
	return link
}

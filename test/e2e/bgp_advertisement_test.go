package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quayside.io/test/lab"
)

// bgpCase is what two routers learn once some objects are there: tor is an
// external one, core is of our own AS. Each line is one route, the same for both
// families: "red" is the address of that Service, "red/pool" all of its pool.
type bgpCase struct {
	name, objects string
	tor, core     []string
}

// advert is a BGPAdvertisement.
func advert(name, spec string) string {
	return fmt.Sprintf("\n---\napiVersion: quayside.io/v1alpha1\nkind: BGPAdvertisement\nmetadata: {name: %s}\nspec: {%s}\n", name, spec)
}

// Services red and blue have one address of each family, in pools of their names;
// node 1 is in rack a, node 2 in rack b, node 3 in none.
const bgpWorld = `
apiVersion: quayside.io/v1alpha1
kind: IPAddressPool
metadata: {name: red, labels: {colour: red}}
spec: {autoAssign: false, addresses: [198.51.100.0/25, "2001:db8:1::/64"]}
---
apiVersion: quayside.io/v1alpha1
kind: IPAddressPool
metadata: {name: blue, labels: {colour: blue}}
spec: {autoAssign: false, addresses: [198.51.100.128/25, "2001:db8:2::/64"]}
---
apiVersion: v1
kind: Service
metadata: {name: red, labels: {tier: gold}, annotations: {quayside.io/loadBalancerIPs: "198.51.100.1,2001:db8:1::1"}}
spec: {type: LoadBalancer, ipFamilyPolicy: RequireDualStack, selector: {app: web}, ports: [{port: 80, targetPort: http}]}
---
apiVersion: v1
kind: Service
metadata: {name: blue, labels: {tier: silver}, annotations: {quayside.io/loadBalancerIPs: "198.51.100.129,2001:db8:2::1"}}
spec: {type: LoadBalancer, ipFamilyPolicy: RequireDualStack, selector: {app: web}, ports: [{port: 80, targetPort: http}]}
`

// bgpNames are the prefixes of that world.
var bgpNames = map[string]string{
	"198.51.100.1/32": "red", "2001:db8:1::1/128": "red", "198.51.100.129/32": "blue", "2001:db8:2::1/128": "blue",
	"198.51.100.0/25": "red/pool", "2001:db8:1::/64": "red/pool", "198.51.100.128/25": "blue/pool", "2001:db8:2::/64": "blue/pool",
}

func bgpCases() []bgpCase {
	return slices.Concat(bgpPropagation(), bgpSelection())
}

// bgpPropagation are the rows of MetalLB's bgp.go: what a route carries.
func bgpPropagation() []bgpCase {
	reds := func(tail string) []string { return []string{"red by 1 2 3" + tail} }
	return []bgpCase{
		{name: "bgp.go: community", objects: advert("a", `ipAddressPools: [red], communities: ["65000:100"]`),
			tor: reds(", path 64500, 65000:100"), core: reds(", localPref 100, 65000:100")},
		{name: "bgp.go: updates of communities", objects: advert("a", `ipAddressPools: [red], communities: ["65000:100", "65000:1"]`),
			tor: reds(", path 64500, 65000:1 65000:100"), core: reds(", localPref 100, 65000:1 65000:100")},
		{name: "bgp.go: large community", objects: advert("a", `ipAddressPools: [red], communities: ["large:65000:1:2"]`),
			tor: reds(", path 64500, large 65000:1:2"), core: reds(", localPref 100, large 65000:1:2")},
		{name: "bgp.go: an alias of a Community", objects: "apiVersion: quayside.io/v1alpha1\nkind: Community\nmetadata: {name: names}\nspec: {communities: [{name: gold, value: \"65000:9\"}]}\n" +
			advert("a", `ipAddressPools: [red], communities: [gold]`),
			tor: reds(", path 64500, 65000:9"), core: reds(", localPref 100, 65000:9")},
		{name: "bgp.go: localPref", objects: advert("a", `ipAddressPools: [red], localPref: 300`),
			tor: reds(", path 64500"), core: reds(", localPref 300")},
		{name: "bgp.go: updates of localPref, and prepending", objects: advert("a", `ipAddressPools: [red], localPref: 50, asPathPrepend: 2`),
			tor: reds(", path 64500 64500 64500"), core: reds(", localPref 50")},
		{name: "bgp.go: the pool is selected by its labels", objects: advert("a", `ipAddressPoolSelectors: [{matchLabels: {colour: red}}]`),
			tor: reds(", path 64500"), core: reds(", localPref 100")},
		{name: "bgp.go: overlapping advertisements unite communities",
			objects: advert("a", `ipAddressPools: [red], communities: ["65000:1"]`) + advert("b", `ipAddressPools: [blue, red], communities: ["65000:2"]`),
			tor:     []string{"blue by 1 2 3, path 64500, 65000:2", "red by 1 2 3, path 64500, 65000:1 65000:2"},
			core:    []string{"blue by 1 2 3, localPref 100, 65000:2", "red by 1 2 3, localPref 100, 65000:1 65000:2"}},
		{name: "bgp.go: aggregation length", objects: advert("a", `ipAddressPools: [red], aggregationLength: 25, aggregationLengthV6: 64`),
			tor: []string{"red/pool by 1 2 3, path 64500"}, core: []string{"red/pool by 1 2 3, localPref 100"}},
		{name: "bgp.go: an aggregate and the address itself",
			objects: advert("a", `ipAddressPools: [red], aggregationLength: 25, aggregationLengthV6: 64`) + advert("b", `ipAddressPools: [red], communities: ["65000:1"]`),
			tor:     []string{"red by 1 2 3, path 64500, 65000:1", "red/pool by 1 2 3, path 64500"},
			core:    []string{"red by 1 2 3, localPref 100, 65000:1", "red/pool by 1 2 3, localPref 100"}},
	}
}

// bgpSelection are rows of bgppeer_selector.go, node_selector.go and
// service_selector.go: who is told what by whom.
func bgpSelection() []bgpCase {
	return []bgpCase{
		{name: "bgppeer_selector.go: a peer that is not listed learns nothing", objects: advert("a", `ipAddressPools: [red], peers: [tor]`),
			tor: []string{"red by 1 2 3, path 64500"}},
		{name: "bgppeer_selector.go: two advertisements to two peers",
			objects: advert("a", `ipAddressPools: [red], peers: [tor], communities: ["65000:1"]`) + advert("b", `ipAddressPools: [blue], peers: [core]`),
			tor:     []string{"red by 1 2 3, path 64500, 65000:1"}, core: []string{"blue by 1 2 3, localPref 100"}},
		{name: "node_selector.go: limited nodes", objects: advert("a", `ipAddressPools: [red], nodeSelectors: [{matchLabels: {rack: a}}, {matchLabels: {rack: b}}]`),
			tor: []string{"red by 1 2, path 64500"}, core: []string{"red by 1 2, localPref 100"}},
		{name: "node_selector.go: one of its selectors is updated", objects: advert("a", `ipAddressPools: [red], nodeSelectors: [{matchLabels: {rack: a}}, {matchLabels: {rack: none}}]`),
			tor: []string{"red by 1, path 64500"}, core: []string{"red by 1, localPref 100"}},
		{name: "node_selector.go: two distinct advertisements",
			objects: advert("a", `ipAddressPools: [red], nodeSelectors: [{matchLabels: {rack: a}}]`) + advert("b", `ipAddressPools: [blue], nodeSelectors: [{matchLabels: {rack: b}}]`),
			tor:     []string{"blue by 2, path 64500", "red by 1, path 64500"}, core: []string{"blue by 2, localPref 100", "red by 1, localPref 100"}},
		{name: "node_selector.go: a single Service, two advertisements",
			objects: advert("a", `ipAddressPools: [red], nodeSelectors: [{matchLabels: {rack: a}}], communities: ["65000:1"]`) + advert("b", `ipAddressPools: [red], nodeSelectors: [{matchLabels: {rack: b}}], communities: ["65000:2"]`),
			tor:     []string{"red by 1, path 64500, 65000:1", "red by 2, path 64500, 65000:2"},
			core:    []string{"red by 1, localPref 100, 65000:1", "red by 2, localPref 100, 65000:2"}},
		{name: "service_selector.go: pool and Service selectors", objects: advert("a", `ipAddressPools: [red, blue], serviceSelectors: [{matchLabels: {tier: gold}}]`),
			tor: []string{"red by 1 2 3, path 64500"}, core: []string{"red by 1 2 3, localPref 100"}},
		{name: "service_selector.go: several selectors", objects: advert("a", `serviceSelectors: [{matchLabels: {tier: gold}}, {matchLabels: {tier: silver}}]`),
			tor:  []string{"blue by 1 2 3, path 64500", "red by 1 2 3, path 64500"},
			core: []string{"blue by 1 2 3, localPref 100", "red by 1 2 3, localPref 100"}},
		{name: "service_selector.go: overlapping communities",
			objects: advert("a", `serviceSelectors: [{matchLabels: {tier: gold}}], communities: ["65000:1"]`) + advert("b", `serviceSelectors: [{matchExpressions: [{key: tier, operator: Exists}]}], communities: ["65000:2"]`),
			tor:     []string{"blue by 1 2 3, path 64500, 65000:2", "red by 1 2 3, path 64500, 65000:1 65000:2"},
			core:    []string{"blue by 1 2 3, localPref 100, 65000:2", "red by 1 2 3, localPref 100, 65000:1 65000:2"}},
		{name: "service_selector.go: separate communities",
			objects: advert("a", `serviceSelectors: [{matchLabels: {tier: gold}}], communities: ["65000:1"]`) + advert("b", `serviceSelectors: [{matchLabels: {tier: silver}}], communities: ["65000:2"]`),
			tor:     []string{"blue by 1 2 3, path 64500, 65000:2", "red by 1 2 3, path 64500, 65000:1"},
			core:    []string{"blue by 1 2 3, localPref 100, 65000:2", "red by 1 2 3, localPref 100, 65000:1"}},
		{name: "service_selector.go: none matches", objects: advert("a", `serviceSelectors: [{matchLabels: {tier: none}}]`)},
	}
}

// Advertisements go in; what an external and an internal router learn of both
// families over one session each is compared. No session is ever reset.
func TestBGPAdvertisements(t *testing.T) {
	beside(t)
	e := three(t)
	e.Pod(3, "web-1", lab.Labels{"app": "web"})
	e.mark(e.Node(1).Name(), "rack", "a")
	e.mark(e.Node(2).Name(), "rack", "b")
	tor, core := e.bgpRouter("tor", 65001), e.bgpRouter("core", 64500)
	e.Apply(bgpWorld + bgpPeer(tor, "tor", 65001, ", dualStackAddressFamily: true"))
	e.bothAddresses("red")
	e.bothAddresses("blue")
	e.sessionsUp(tor)
	before := e.neighbours(tor)
	e.Apply(bgpPeer(core, "core", 64500, ", dualStackAddressFamily: true")) // peers come one by one
	e.sessionsUp(core)
	for _, c := range bgpCases() {
		t.Run(c.name, func(t *testing.T) {
			e := edge{e.With(t), t}
			e.Apply(c.objects)
			e.has(tor, c.tor...)
			e.has(core, c.core...)
		})
	}
	t.Run("updates in place", func(t *testing.T) { e.bgpUpdates(t, tor) })
	for hop, n := range e.neighbours(tor) {
		if n.State != "Established" || n.Dropped != before[hop].Dropped {
			t.Errorf("the session of %s was reset: %+v, was %+v", hop, n, before[hop])
		}
	}
}

// bgpUpdates changes one advertisement, and what it selects, in place.
func (e edge) bgpUpdates(t *testing.T, tor *lab.Router) {
	services, view := e.Kube().CoreV1().Services(e.Namespace()), edge{e.With(t), t}
	update := func(spec string) {
		t.Helper()
		if err := view.TryApply(advert("a", spec)); err != nil {
			t.Fatal(err)
		}
	}
	view.Apply(advert("a", `serviceSelectors: [{matchLabels: {tier: gold}}]`))
	view.has(tor, "red by 1 2 3, path 64500")
	update(`serviceSelectors: [{matchLabels: {tier: silver}}]`)
	view.has(tor, "blue by 1 2 3, path 64500")
	for _, tier := range []string{"bronze", "silver"} {
		label := fmt.Appendf(nil, `{"metadata":{"labels":{"tier":%q}}}`, tier)
		if _, err := services.Patch(t.Context(), "blue", types.MergePatchType, label, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		view.has(tor, map[string][]string{"silver": {"blue by 1 2 3, path 64500"}}[tier]...)
	}
	update(`ipAddressPools: [red], serviceSelectors: [], aggregationLength: 25, aggregationLengthV6: 64`)
	view.has(tor, "red/pool by 1 2 3, path 64500")
	update(`ipAddressPools: [red], aggregationLength: 32, aggregationLengthV6: 128, nodeSelectors: [{matchLabels: {rack: c}}]`)
	view.has(tor)
	e.mark(e.Node(3).Name(), "rack", "c")
	view.has(tor, "red by 3, path 64500")
}

// has waits until a router has exactly these routes, in both families, and not
// just between two updates.
func (e edge) has(router *lab.Router, want ...string) {
	e.t.Helper()
	const lasting = 200 * time.Millisecond
	var since time.Time
	e.Eventually(settle, func() error {
		for _, family := range []string{"ipv4", "ipv6"} {
			got, err := e.table(router, family)
			if err == nil && !slices.Equal(got, want) {
				err = fmt.Errorf("%s: has %q, want %q", family, got, want)
			}
			if err != nil {
				since = time.Time{}
				return err
			}
		}
		if since.IsZero() {
			since = time.Now()
		}
		if time.Since(since) < lasting {
			return errors.New("it is as wanted, but may still change")
		}
		return nil
	})
}

// table are the routes of a router as lines of bgpCase. Paths that differ only in
// the node are one line.
func (e edge) table(router *lab.Router, family string) ([]string, error) {
	out, err := router.TryShow("show bgp " + family + " unicast json")
	if err != nil {
		return nil, err
	}
	var all struct{ Routes map[string]json.RawMessage }
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		return nil, err
	}
	var lines []string
	for prefix := range all.Routes {
		paths, err := pathsOf(router, family, prefix)
		if err != nil {
			return nil, err
		}
		nodes := map[string][]string{} // by what else the path says
		for _, p := range paths {
			nodes[p.String()] = append(nodes[p.String()], e.nodeOf(p))
		}
		for says, by := range nodes {
			slices.Sort(by)
			lines = append(lines, bgpNames[prefix]+" by "+strings.Join(by, " ")+says)
		}
	}
	slices.Sort(lines)
	return lines, nil
}

// String is what a path says besides its next hop.
func (p bgpPath) String() string {
	var b strings.Builder
	if p.Path.String != "Local" {
		b.WriteString(", path " + p.Path.String)
	} else {
		fmt.Fprintf(&b, ", localPref %d", p.LocalPref)
	}
	if p.Community.String != "" {
		b.WriteString(", " + p.Community.String)
	}
	if p.LargeCommunity.String != "" {
		b.WriteString(", large " + p.LargeCommunity.String)
	}
	return b.String()
}

// nodeOf is the number of the node that is the next hop of a path.
func (e edge) nodeOf(p bgpPath) string {
	for i, n := range e.Nodes() {
		for _, hop := range p.NextHops {
			if hop.IP == n.IP() || hop.IP == n.IPv6() {
				return fmt.Sprint(i + 1)
			}
		}
	}
	return fmt.Sprint(p.NextHops)
}

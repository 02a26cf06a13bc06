package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"quayside.io/test/lab"
)

// rack is a router before the nodes, with a BGP session to each, and a machine
// whose way to the addresses of the pool called bgp leads through it.
type rack struct {
	edge
	router *lab.Router
	laptop *lab.Client
}

// bgpPool is a pool that is announced by BGP, with a community.
const bgpPool = `
apiVersion: quayside.io/v1alpha1
kind: IPAddressPool
metadata: {name: bgp}
spec: {autoAssign: false, addresses: [198.51.100.0/24]}
---
apiVersion: quayside.io/v1alpha1
kind: BGPAdvertisement
metadata: {name: bgp}
spec: {ipAddressPools: [bgp], communities: ["65000:7"]}
`

const rackCommunity = "65000:7"

// newRack starts the router, with these options of each of its neighbours, and
// declares it as a BGPPeer with more fields than the least.
func newRack(e edge, peer string, neighbour ...string) rack {
	e.t.Helper()
	r := rack{edge: e, router: e.bgpRouter("tor", 65001, neighbour...), laptop: e.Client("laptop")}
	// It is on the same LAN, and would be redirected to the nodes.
	r.laptop.Exec("sysctl", "-qw", "net.ipv4.conf.all.accept_redirects=0", "net.ipv4.conf.eth0.accept_redirects=0")
	r.laptop.Exec("ip", "route", "add", "198.51.100.0/24", "via", r.router.IP())
	e.Apply(bgpPool + bgpPeer(r.router, "tor", 65001, peer))
	return r
}

// bgpRouter starts FRR in an AS, with a session for both families to each node.
func (e edge) bgpRouter(name string, asn int, neighbour ...string) *lab.Router {
	e.t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "router bgp %d\n no bgp ebgp-requires-policy\n bgp bestpath as-path multipath-relax\n", asn)
	for _, hop := range e.hops() {
		for _, option := range append([]string{"remote-as 64500"}, neighbour...) {
			fmt.Fprintf(&b, " neighbor %s %s\n", hop, option)
		}
	}
	b.WriteString(" address-family ipv6 unicast\n")
	for _, hop := range e.hops() {
		fmt.Fprintf(&b, "  neighbor %s activate\n", hop)
	}
	return e.Router(name, b.String()+" exit-address-family\n")
}

// bgpPeer is the BGPPeer of a router in an AS; more are fields of its spec.
func bgpPeer(router *lab.Router, name string, asn int, more string) string {
	return fmt.Sprintf(`
---
apiVersion: quayside.io/v1alpha1
kind: BGPPeer
metadata: {name: %s}
spec: {myASN: 64500, peerASN: %d, peerAddress: %s, connectTime: 1s%s}
`, name, asn, router.IP(), more)
}

// bgpService is a Service of pool bgp in front of pods app=web.
func bgpService(name, policy string) string {
	return fmt.Sprintf(`
---
apiVersion: v1
kind: Service
metadata: {name: %s, annotations: {quayside.io/address-pool: bgp}}
spec: {type: LoadBalancer, externalTrafficPolicy: %s, selector: {app: web}, ports: [{port: 80, targetPort: http}]}
`, name, policy)
}

// far makes Service far of policy Cluster, and returns its address once every node is a way to
// it that serves.
func (r rack) far() string {
	r.t.Helper()
	r.Apply(bgpService("far", "Cluster"))
	far := r.serviceAddress("far")
	r.learns(far, r.hops()...)
	r.serves(far)
	return far
}

// hops are the addresses of nodes, or of all if none is named, in order.
func (e edge) hops(nodes ...*lab.Node) []string {
	if len(nodes) == 0 {
		nodes = e.Nodes()
	}
	var list []string
	for _, n := range nodes {
		list = append(list, n.IP())
	}
	slices.Sort(list)
	return list
}

// learns waits until the router sends an address to exactly these next hops, in
// its table and in its kernel.
func (r rack) learns(address string, want ...string) {
	r.t.Helper()
	r.Eventually(settle, func() error {
		got, err := nextHops(r.router, address, rackCommunity)
		if err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("%s by %v, want %v", address, got, want)
		}
		if err != nil {
			return err
		}
		route := r.router.Exec("ip", "route", "show", address)
		for _, hop := range want {
			if !strings.Contains(route, "via "+hop+" ") {
				return fmt.Errorf("its kernel has %q, want a way by %v", route, want)
			}
		}
		if strings.Count(route, "via ") != len(want) {
			return fmt.Errorf("its kernel has %q, want ways by %v only", route, want)
		}
		return nil
	})
}

// tells makes the router announce a prefix to every node.
func (r rack) tells(prefix string) {
	r.t.Helper()
	r.router.Show("configure terminal\nrouter bgp 65001\nno bgp network import-check\naddress-family ipv4 unicast\nnetwork " + prefix)
	r.Eventually(settle, func() error {
		for _, hop := range r.hops() {
			out, err := r.router.TryShow("show bgp ipv4 unicast neighbors " + hop + " advertised-routes json")
			if err != nil {
				return err
			}
			if !strings.Contains(out, `"`+prefix+`"`) {
				return fmt.Errorf("%s was not told %s", hop, prefix)
			}
		}
		return nil
	})
}

// bgpPath is one path of an address in a router's table.
type bgpPath struct {
	Stale          bool
	LocalPref      int                     `json:"locPrf"`
	Path           struct{ String string } `json:"aspath"`
	Community      struct{ String string }
	LargeCommunity struct{ String string } `json:"largeCommunity"`
	NextHops       []struct{ IP string }   `json:"nexthops"`
}

func bgpPaths(router *lab.Router, address string) ([]bgpPath, error) {
	return pathsOf(router, "ipv4", address+"/32")
}

func pathsOf(router *lab.Router, family, prefix string) ([]bgpPath, error) {
	out, err := router.TryShow("show bgp " + family + " unicast " + prefix + " json")
	if err != nil {
		return nil, err
	}
	var entry struct{ Paths []bgpPath }
	err = json.Unmarshal([]byte(out), &entry)
	return entry.Paths, err
}

// nextHops are those of an address in the router's table, ordered. All its paths
// must have exactly these communities.
func nextHops(router *lab.Router, address, communities string) ([]string, error) {
	paths, err := bgpPaths(router, address)
	if err != nil {
		return nil, err
	}
	have := map[string]bool{}
	for _, p := range paths {
		if p.Community.String != communities {
			return nil, fmt.Errorf("community %q", p.Community.String)
		}
		have[p.NextHops[0].IP] = true
	}
	return slices.Sorted(maps.Keys(have)), nil
}

// bgpNeighbour is a session as a router tells it.
type bgpNeighbour struct {
	State    string `json:"bgpState"`
	Dropped  int    `json:"connectionsDropped"`
	Farewell string `json:"lastShutdownDescription"`
	Reason   string `json:"lastNotificationReason"`
}

// neighbours are the sessions of a router by the addresses of the nodes.
func (e edge) neighbours(router *lab.Router) map[string]bgpNeighbour {
	e.t.Helper()
	all := map[string]json.RawMessage{}
	out := router.Show("show bgp neighbors json")
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		e.t.Fatalf("%v: %s", err, out)
	}
	list := map[string]bgpNeighbour{}
	for ip, text := range all {
		var n bgpNeighbour
		if json.Unmarshal(text, &n) == nil && n.State != "" {
			list[ip] = n
		}
	}
	return list
}

// sessionsUp waits until a router has a session with each node.
func (e edge) sessionsUp(router *lab.Router) {
	e.t.Helper()
	e.Eventually(settle, func() error {
		all := e.neighbours(router)
		for _, hop := range e.hops() {
			if all[hop].State != "Established" {
				return fmt.Errorf("the session with %s is %s", hop, all[hop].State)
			}
		}
		return nil
	})
}

// bfdUp returns nil if a router has a BFD session that is up with each address.
func bfdUp(router *lab.Router, addresses []string) error {
	out, err := router.TryShow("show bfd peers json")
	if err != nil {
		return err
	}
	var peers []struct{ Peer, Status string }
	if err := json.Unmarshal([]byte(out), &peers); err != nil {
		return err
	}
	up := map[string]bool{}
	for _, p := range peers {
		up[p.Peer] = p.Status == "up"
	}
	for _, a := range addresses {
		if !up[a] {
			return fmt.Errorf("BFD with %s is not up: %+v", a, peers)
		}
	}
	return nil
}

// serves waits until the laptop is answered at an address, by way of every node.
func (r rack) serves(address string) {
	r.t.Helper()
	r.servesTo(r.laptop.Host, address)
}

// servesTo waits until from is answered at an address so often in a row that each
// way of a router was taken: a node is a way as soon as its speaker knows the
// Service, and its kube-proxy may be later.
func (e edge) servesTo(from lab.Host, address string) {
	e.t.Helper()
	e.Eventually(settle, func() error {
		for range 32 {
			resp, err := from.Try("http://"+address, lab.Timeout(time.Second))
			if err == nil && resp.Status != http.StatusOK {
				err = fmt.Errorf("%s answers %d", address, resp.Status)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// watch opens a new connection to address each 10 ms, until the returned
// function judges as that of watchMoves does.
func (r rack) watch(address string) (judge func(what string, moves int)) {
	r.t.Helper()
	// Now and then a first packet passes kube-proxy while it writes its rules.
	r.unserved("198.51.100.0/24", "drop")
	probe := r.laptop.Probe(address+":80", 10*time.Millisecond, handshake)
	return func(what string, moves int) {
		r.t.Helper()
		time.Sleep(500 * time.Millisecond) // connections go on after the last move
		r.judge(what, probe, moves)
	}
}

// routeMonitor hears when the router's kernel loses its route to an address.
type routeMonitor struct {
	mu   sync.Mutex
	lost map[string]time.Time
}

func (r rack) monitor(t *testing.T) *routeMonitor {
	t.Helper()
	cmd := exec.Command("ip", "-4", "monitor", "route")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.router.Start(cmd); err != nil {
		t.Fatal(err)
	}
	m := &routeMonitor{lost: map[string]time.Time{}}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if words := strings.Fields(lines.Text()); len(words) > 1 && words[0] == "Deleted" {
				m.mu.Lock()
				m.lost[words[1]] = time.Now()
				m.mu.Unlock()
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-read
		_ = cmd.Wait() // says "killed"
	})
	return m
}

// lostAt is when the route to an address went last; zero: it has not.
func (m *routeMonitor) lostAt(address string) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lost[address]
}

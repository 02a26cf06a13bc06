package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"quayside.io/command/explain"
	"quayside.io/test/lab"
)

// Where nobody has an IPv4 address, nothing may rest on one: the gossip and what signs it, the
// way to the API server, who announces by NDP and takes over, the proxy on its way in and out,
// the router ID of BGP, and what `status` and `trace` say.
func TestIPv6Alone(t *testing.T) {
	beside(t)
	e := passing(t, "six")
	t.Run("neighbour discovery", func(t *testing.T) { e.under(t).movesAlone() })
	t.Run("ingress", func(t *testing.T) { e.under(t).proxiedAlone() })
	t.Run("bgp", func(t *testing.T) { e.under(t).routedAlone() })
}

// movesAlone has the holder of an address die.
func (e edge) movesAlone() {
	e.t.Helper()
	e.podOnEachNode()
	e.Apply(loadBalancer("Local"))
	address, laptop := e.serviceAddress("web"), e.asker("laptop")
	holder := e.nodeNamed(e.servedAt(laptop.Client, address))
	e.Eventually(settle, func() error { return e.agree(address, holder.Name()) })
	e.sound(laptop.Client, address)
	holder.Fail()
	e.Eventually(settle, func() error {
		if who := laptop.who(address); slices.Contains(who, holder.Name()) || len(who) != 1 {
			return fmt.Errorf("%s is answered for by %v", address, who)
		}
		return nil
	})
	if now := e.servedAt(laptop.Client, address); now == holder.Name() {
		e.t.Errorf("%s is still served by %s, which is dead", address, now)
	}
	holder.Heal()
	e.meet(len(e.Nodes()))
}

// proxiedAlone asks through the proxy, whose pod hears who asked.
func (e edge) proxiedAlone() {
	e.t.Helper()
	e.serve("video", "store")
	e.Apply(clusterIPServices("video", "store"))
	e.Apply(textbook)
	address, laptop := e.ingressAddress("by-host"), e.Client("laptop")
	host := net.JoinHostPort(address, "80")
	e.until(laptop, "["+address+"]", "http://store.example.com/", "store")
	reply := laptop.Reply("http://video.example.com/", lab.Via(host), lab.Header("X-Forwarded-For", "2001:db8::66"))
	for name, want := range map[string]string{"X-Forwarded-For": laptop.IPv6(), "X-Real-Ip": laptop.IPv6()} {
		if got := reply.Headers.Get(name); got != want {
			e.t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	// The textbook's first Ingress has no host: an address in brackets is one like any other.
	if reply := laptop.Reply("http://" + host + "/video/1"); reply.Pod != "video" {
		e.t.Errorf("http://%s/video/1 is answered by %s", host, reply.Pod)
	}
	e.sound(laptop, "http://video.example.com/")
}

// routedAlone has a router learn an address over sessions between IPv6 addresses.
func (e edge) routedAlone() {
	e.t.Helper()
	e.podOnEachNode()
	router := e.Router("tor", fmt.Sprintf(`router bgp 65001
 bgp router-id 192.0.2.1
 no bgp ebgp-requires-policy
 no bgp default ipv4-unicast
 bgp bestpath as-path multipath-relax
 neighbor nodes peer-group
 neighbor nodes remote-as 64500
 neighbor %s peer-group nodes
 address-family ipv6 unicast
  neighbor nodes activate
 exit-address-family
`, strings.Join(e.hops(), " peer-group nodes\n neighbor ")))
	e.Apply(strings.ReplaceAll(bgpPool, "198.51.100.0/24", "2001:db8:100::/64") + bgpPeer(router, "tor", 65001, "") + bgpService("far", "Cluster") + `---
apiVersion: quayside.io/v1alpha1
kind: L2Advertisement
metadata: {name: lan}
spec: {ipAddressPools: [lan]}
`)
	far, ids := e.serviceAddress("far"), map[string]bool{}
	e.Eventually(settle, func() error {
		paths, err := pathsOf(router, "ipv6", far+"/128")
		if err == nil && len(paths) != len(e.Nodes()) {
			err = fmt.Errorf("%s has %d paths", far, len(paths))
		}
		return err
	})
	e.Eventually(settle, func() error {
		_, err := router.Try("http://"+net.JoinHostPort(far, "80")+"/", lab.Timeout(time.Second))
		return err
	})
	var neighbours map[string]struct {
		ID string `json:"remoteRouterId"`
	}
	said := router.Show("show bgp neighbors json")
	if err := json.Unmarshal([]byte(said), &neighbours); err != nil {
		e.t.Fatalf("%v: %s", err, said)
	}
	for _, n := range neighbours {
		ids[n.ID] = true
	}
	if len(ids) != len(e.Nodes()) {
		e.t.Errorf("router IDs %v of %d nodes", ids, len(e.Nodes()))
	}
	e.sound(e.Client("laptop"), far)
}

// sound wants `trace` to find all of the way to target working, and `status` no problem.
func (e edge) sound(from *lab.Client, target string) {
	e.t.Helper()
	e.Eventually(settle, func() error {
		path, report := &explain.Path{}, &explain.Report{}
		if err := errors.Join(e.ran(from, path, "trace "+target), e.ran(from, report, "status")); err != nil {
			return err
		}
		for _, l := range path.Links {
			if l.State != explain.Works {
				return fmt.Errorf("%s: %+v", target, l)
			}
		}
		if len(path.Links) == 0 || len(report.Problems) > 0 {
			return fmt.Errorf("%d links to %s, and problems %+v", len(path.Links), target, report.Problems)
		}
		return nil
	})
}

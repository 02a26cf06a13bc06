package e2e

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"quayside.io/command/explain"
	"quayside.io/test/lab"
)

// Drawn Services and pods come up, change and go: at each of their addresses and ports a machine on
// the LAN gets an answer if, and only if, `quayside trace` finds nothing on the way there broken,
// and lets it in.
func TestTraceTellsWhatIsReached(t *testing.T) {
	beside(t)
	e := big(t)
	for seed := range drawn(1, 10) {
		t.Run(fmt.Sprintf("cluster %d", seed), func(t *testing.T) {
			here := edge{e.With(t), t}
			w := &reachedWorld{dice: throw(seed, 12), edge: here, laptop: here.Client("laptop")}
			t.Cleanup(func() {
				for _, n := range here.everyNode() {
					here.labelNode(n, excludeLabel, "")
				}
			})
			w.drawPods()
			w.drawServices()
			w.agree("at first")
			for i := range drawn(1, 4) {
				w.change()
				w.agree(fmt.Sprintf("changed %d times", i+1))
			}
		})
	}
}

// reachedWorld are Services with addresses of pool lan, in front of pods of four kinds.
type reachedWorld struct {
	dice
	edge
	laptop   *lab.Client
	pods     []*lab.Pod
	services []reachedService
}

// reachedService is one by name, and what its spec says of families, which it keeps.
type reachedService struct{ name, families string }

// reachedKinds are of pods: a pod may be of several.
var reachedKinds = []string{"red", "green", "blue", "none"}

func (w *reachedWorld) drawPods() {
	for i := range 6 {
		labels := lab.Labels{}
		for _, kind := range reachedKinds[:3] {
			if w.IntN(2) == 0 {
				labels[kind] = "yes"
			}
		}
		option := []lab.PodOption{lab.Port(pick(w.dice, "http", "http", "web"), 8080)}
		if w.IntN(3) == 0 {
			option = append(option, lab.Port("admin", 9090))
		}
		if w.IntN(3) == 0 {
			option = append(option, lab.NotReady())
		}
		w.pods = append(w.pods, w.Pod(1+w.IntN(5), fmt.Sprintf("pod-%d", i), labels, option...))
	}
}

func (w *reachedWorld) drawServices() {
	var b strings.Builder
	for i := range drawn(7, 10) {
		s := reachedService{fmt.Sprintf("s%d", i), pick(w.dice,
			"ipFamilies: [IPv4]", "ipFamilies: [IPv6]", "ipFamilies: [IPv4, IPv6], ipFamilyPolicy: RequireDualStack", "ipFamilies: [IPv6, IPv4], ipFamilyPolicy: RequireDualStack")}
		w.services = append(w.services, s)
		b.WriteString(w.drawService(s))
	}
	w.Apply(b.String())
}

func (w *reachedWorld) drawService(s reachedService) string {
	ports := []string{fmt.Sprintf("{name: a, port: 80, targetPort: %s}", pick(w.dice, "http", "web", "8080", "admin"))}
	switch w.IntN(4) {
	case 0:
		ports = append(ports, fmt.Sprintf("{name: b, port: 8081, targetPort: %s}", pick(w.dice, "admin", "http")))
	case 1:
		ports = []string{fmt.Sprintf("{name: b, port: %d, targetPort: %s}", 8081+w.IntN(3), pick(w.dice, "admin", "http"))}
	}
	spec := []string{
		"type: LoadBalancer",
		"externalTrafficPolicy: " + pick(w.dice, "Local", "Cluster"),
		"internalTrafficPolicy: " + pick(w.dice, "Cluster", "Cluster", "Local"),
		s.families,
		fmt.Sprintf("selector: {%s: \"yes\"}", pick(w.dice, reachedKinds...)),
		fmt.Sprintf("publishNotReadyAddresses: %t", w.seldom(4)),
		"ports: [" + strings.Join(ports, ", ") + "]",
	}
	if ranges := w.drawRanges(); len(ranges) > 0 {
		spec = append(spec, "loadBalancerSourceRanges: ["+strings.Join(ranges, ", ")+"]")
	}
	if w.seldom(4) {
		spec = append(spec, "allocateLoadBalancerNodePorts: false")
	}
	if w.seldom(4) {
		spec = append(spec, "sessionAffinity: ClientIP")
	}
	if w.seldom(4) {
		spec = append(spec, fmt.Sprintf("externalIPs: [10.77.0.%d]", 150+w.IntN(20)))
	}
	annotations := ""
	if w.IntN(2) == 0 {
		annotations = "quayside.io/allow-shared-ip: " + pick(w.dice, "one", "two")
	}
	return fmt.Sprintf("---\napiVersion: v1\nkind: Service\nmetadata: {name: %s, annotations: {%s}}\nspec: {%s}\n", s.name, annotations, strings.Join(spec, ", "))
}

// drawRanges are those of the clients that a Service lets in, mostly all of them.
func (w *reachedWorld) drawRanges() (ranges []string) {
	if w.IntN(2) == 0 {
		return nil
	}
	for range 1 + w.IntN(2) {
		ranges = append(ranges, pick(w.dice,
			w.laptop.IP()+"/32", `"`+w.laptop.IPv6()+`/128"`, "10.77.0.0/24", `"fd77::/64"`, "192.0.2.0/24", `"2001:db8::/32"`, "0.0.0.0/0", `"::/0"`))
	}
	return ranges
}

// change changes a few pods, Services and nodes.
func (w *reachedWorld) change() {
	w.labelNode(pick(w.dice, w.everyNode()...), excludeLabel, pick(w.dice, "", "yes"))
	for range 1 + w.IntN(3) {
		i := w.IntN(len(w.pods))
		if w.seldom(4) && len(w.pods) > 1 {
			w.pods[i].Delete()
			w.pods = slices.Delete(w.pods, i, i+1)
		} else {
			w.pods[i].SetReady(w.IntN(2) == 0)
		}
	}
	var changed strings.Builder
	for _, s := range w.services {
		if w.seldom(3) {
			changed.WriteString(w.drawService(s))
		}
	}
	w.Apply(changed.String())
}

// reachedEnd is where a client connects to, and what became of it.
type reachedEnd struct {
	at     netip.AddrPort
	said   string // by trace: empty if a client of this address gets an answer
	answer error
}

// agree waits until what is told and what happens are the same at each end, in two rounds that
// follow each other.
func (w *reachedWorld) agree(when string) {
	w.t.Helper()
	agreed := false
	w.Eventually(2*settle, func() error {
		again := agreed
		agreed = false
		ends, err := w.ends()
		if err != nil {
			return err
		}
		// As long as it gets answers, a client keeps to a node that has given the address up.
		w.laptop.Exec("ip", "neigh", "flush", "dev", "eth0")
		var asking errgroup.Group
		asking.SetLimit(16)
		for i := range ends {
			asking.Go(func() error { return w.ask(&ends[i]) })
		}
		if err := asking.Wait(); err != nil {
			return err
		}
		reached := 0
		for _, end := range ends {
			if end.answer == nil {
				reached++
			}
			if (end.said == "") != (end.answer == nil) {
				return fmt.Errorf("%s: %s: trace says %q, the laptop got %v", when, end.at, end.said, end.answer)
			}
		}
		if agreed = true; !again {
			return fmt.Errorf("%s: all agree, once", when)
		}
		w.t.Logf("%s: %d of %d ends reached", when, reached, len(ends))
		return nil
	})
}

// ends are all addresses and ports of the Services, each of which has its addresses.
func (w *reachedWorld) ends() (ends []reachedEnd, err error) {
	for _, drawn := range w.services {
		s, err := w.service(drawn.name)
		if err != nil {
			return nil, err
		}
		if len(s.Status.LoadBalancer.Ingress) != len(s.Spec.IPFamilies) {
			return nil, fmt.Errorf("Service %s of %v has %v", s.Name, s.Spec.IPFamilies, s.Status.LoadBalancer.Ingress)
		}
		addresses := slices.Clone(s.Spec.ExternalIPs)
		for _, in := range s.Status.LoadBalancer.Ingress {
			addresses = append(addresses, in.IP)
		}
		for _, address := range addresses {
			for _, port := range s.Spec.Ports {
				ends = append(ends, reachedEnd{at: netip.AddrPortFrom(netip.MustParseAddr(address), uint16(port.Port))})
			}
		}
	}
	return ends, nil
}

// ask asks both trace and the LAN.
func (w *reachedWorld) ask(end *reachedEnd) error {
	path, url := &explain.Path{}, "http://"+end.at.String()+"/"
	target := url
	if end.at.Port()%2 == 0 { // the other way to say so
		target = end.at.String() + "/tcp"
	}
	if err := w.ran(w.laptop, path, "trace "+target); err != nil {
		return err
	}
	own := w.laptop.IP()
	if end.at.Addr().Is6() {
		own = w.laptop.IPv6()
	}
	end.said = closedTo(path, netip.MustParseAddr(own))
	_, end.answer = w.laptop.Try(url, lab.Timeout(time.Second))
	return nil
}

// closedTo says what a path has against a client, if anything.
func closedTo(path *explain.Path, client netip.Addr) string {
	for _, l := range path.Links {
		if l.State != explain.Works {
			return l.Name + ": " + l.Says
		}
		those, some := strings.CutPrefix(l.Says, "from ")
		those, _, _ = strings.Cut(those, " alone, ")
		lets := func(text string) bool {
			p, err := netip.ParsePrefix(text)
			return err == nil && p.Contains(client)
		}
		if l.Name == "clients" && some && !slices.ContainsFunc(strings.Split(those, ", "), lets) {
			return l.Name + ": " + l.Says
		}
	}
	if len(path.Links) == 0 {
		return "nothing"
	}
	return ""
}

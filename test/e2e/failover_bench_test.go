package e2e

import (
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/test/lab"
)

// BenchmarkFailover is how long an address has no answer when its holder dies,
// as clients with a new connection each 10 ms see it: for two profiles of the
// speaker, and for MetalLB and keepalived in the same lab with the same pods,
// kube-proxies, probes and faults. Only who moves the address differs. `make bench-failover`
// runs twenty trials of each; -bench Failover/seven and the like choose.
func BenchmarkFailover(b *testing.B) {
	peer, err := keepalivedVersion()
	if err != nil {
		peer = fmt.Sprintf("keepalived is left out: %v", err)
	}
	t := table{title: "MetalLB " + lab.MetalLBVersion + ", " + peer}
	for _, s := range stages() {
		b.Run(s.name, func(b *testing.B) {
			for _, m := range s.movers(err == nil) {
				b.Run(m.name, func(b *testing.B) { t.measure(b, s, m) })
			}
		})
	}
	t.print()
}

// stage is where the movers are measured.
type stage struct {
	name   string // a part of the benchmark's name
	nodes  int
	family string                            // of the address that dies
	movers func(withKeepalived bool) []mover // keepalived is measured once
}

func stages() []stage {
	ours := func(bool) []mover {
		return []mover{byQuayside("default", 400*time.Millisecond), byQuayside("fast", 150*time.Millisecond)}
	}
	all := func(withKeepalived bool) []mover {
		movers := append(ours(false), byMetalLB())
		if !withKeepalived {
			return movers
		}
		return append(movers, byKeepalived("keepalived-default", keepalivedDefault()), byKeepalived("keepalived-tuned", keepalivedTuned()))
	}
	return []stage{
		{"three", 3, "IPv4", all},
		{"seven", 7, "IPv4", ours},
		{"three-ipv6", 3, "IPv6", ours},
		{"seven-ipv6", 7, "IPv6", ours},
	}
}

// fault is a way for the holder of an address to die, and to return.
type fault struct {
	name         string
	strike, mend func(*rig, *lab.Node)
	// cutsOff says that nobody reaches the node any more. One whose mover alone
	// dies may go on serving those who know it.
	cutsOff bool
}

func faults() []fault {
	heal := func(_ *rig, n *lab.Node) { n.Heal() }
	return []fault{
		{"silence", func(_ *rig, n *lab.Node) { n.Fail() }, heal, true},
		{"carrier", func(_ *rig, n *lab.Node) { n.CarrierDown() }, heal, true},
		{"killed", func(r *rig, n *lab.Node) { r.mover.kill(r, n) }, func(r *rig, n *lab.Node) { r.mover.revive(r, n) }, false},
	}
}

// mover is who moves the address.
type mover struct {
	name string
	// install makes it hold Service web's address, and returns that.
	install func(*rig) string
	// agrees returns nil when it is over the last fault: every part of it lives,
	// and owner alone holds the address.
	agrees func(r *rig, owner string) error
	// kill ends the part of it on one node (SIGKILL), revive brings it back.
	kill, revive func(*rig, *lab.Node)
	// restarted returns nil when the part that kill ended runs again and answers, and is
	// set where it may do so before any other node has noticed.
	restarted func(*rig, *lab.Node) error
	// mended helps the mover over a fault that is mended, unless nil.
	mended func(*rig)
	// stays says that a return must move nothing.
	stays bool
	// within is what the worst trial may cost; zero: no promise.
	within time.Duration
}

// rig is a cluster whose nodes have a pod of Service web each: its policy is
// Local, so that nothing behind the address is lost with a node, and who serves
// is who holds the address.
type rig struct {
	*lab.Cluster
	b        *testing.B
	stage    stage
	mover    mover
	nodePort int32
	address  string
}

func newRig(b *testing.B, s stage, m mover) *rig {
	r := &rig{Cluster: lab.New(b, lab.Nodes(s.nodes), lab.IPv6()), b: b, stage: s, mover: m}
	for n := range r.Nodes() {
		r.Pod(n+1, fmt.Sprintf("web-%d", n+1), lab.Labels{"app": "web"})
	}
	r.Apply(fmt.Sprintf("%s  ipFamilies: [%s]\n", loadBalancer("Local"), s.family))
	svc, err := r.Kube().CoreV1().Services(r.Namespace()).Get(b.Context(), "web", metav1.GetOptions{})
	if err != nil {
		b.Fatal(err)
	}
	r.nodePort = svc.Spec.Ports[0].NodePort
	r.address = m.install(r)
	return r
}

// under is the same rig for a benchmark within the rig's own.
func (r *rig) under(b *testing.B) *rig {
	inner := *r
	inner.Cluster, inner.b = r.With(b), b
	return &inner
}

func (r *rig) target() string { return net.JoinHostPort(r.address, "80") }

// trial lets the holder of the address die, waits for the next one, brings the
// dead one back, and returns how long nobody answered and whether several nodes
// did afterwards.
//
// Two clients look: a laptop, which knows the holder's MAC until it is told
// another, and a visitor, who asks the LAN for each connection. The one who
// waits longer counts. When only the mover dies, its node still serves the
// laptop, and it depends on the mover what the visitor sees: addresses that
// keepalived put on an interface stay there when it is killed, so the dead
// one's kernel goes on answering, and does so beside the successor for as long
// as nobody mends it. That is no outage, and two nodes with one address.
func (r *rig) trial(f fault) (outage time.Duration, doubled bool) {
	holder := r.awaitWhole()
	laptop, visitor := r.Client("laptop"), r.Client("visitor")
	// The visitor's question waits for its answer that long. Were it as patient as
	// an outage of profile fast is long, it would fail nowhere and see none.
	const patience = 100 * time.Millisecond
	probes := []*lab.Prober{
		laptop.Probe(r.target(), 10*time.Millisecond, 200*time.Millisecond),
		visitor.ProbeAfresh(r.target(), 10*time.Millisecond, patience),
	}
	// The cut falls anywhere between two beats of whoever watches the holder.
	time.Sleep(200*time.Millisecond + rand.N(time.Second))
	f.strike(r, holder)
	var successor string
	r.Eventually(settle, func() (err error) {
		successor, err = r.askPod(laptop, r.target())
		if err == nil && successor == holder.Name() {
			err = fmt.Errorf("%s still answers", successor)
			if r.mover.restarted != nil && !f.cutsOff {
				err = r.mover.restarted(r, holder)
			}
		}
		return err
	})
	time.Sleep(300 * time.Millisecond) // it goes on answering, or that counts as well
	doubled = len(laptop.WhoHas(r.address)) > 1
	failed := 0
	for _, p := range probes {
		report := p.Stop()
		failed += report.Failed
		outage = max(outage, report.Gap)
	}
	if failed == 0 && f.cutsOff {
		r.b.Fatalf("%s: %s died and nobody noticed", f.name, holder.Name())
	}
	f.mend(r, holder)
	if r.mover.mended != nil {
		r.mover.mended(r)
	}
	if now := r.awaitWhole().Name(); r.mover.stays && now != successor {
		r.b.Errorf("%s: the return of %s moved the address from %s to %s", f.name, holder.Name(), successor, now)
	}
	if failed == 0 {
		outage = 0 // a pause of the machine, between two connections that succeeded
	}
	return outage, doubled
}

// awaitWhole returns the holder of the address once every node serves, one of
// them answers for the address, and the mover agrees.
func (r *rig) awaitWhole() (holder *lab.Node) {
	laptop := r.Client("laptop")
	r.Eventually(settle, func() error {
		// Asking the LAN also tells the laptop. keepalived's master does not, when
		// it returns from a silence in which it never ceased to be master, and the
		// laptop would go on to use the node that filled in.
		macs := laptop.WhoHas(r.address)
		name, err := r.askPod(laptop, r.target())
		if err != nil {
			return err
		}
		i := slices.IndexFunc(r.Nodes(), func(n *lab.Node) bool { return n.Name() == name })
		if i < 0 {
			return fmt.Errorf("%s is served by %q, which is no node", r.address, name)
		}
		holder = r.Nodes()[i]
		if !slices.Equal(macs, []string{holder.MAC()}) {
			return fmt.Errorf("%s is served by %s and answered by %v", r.address, name, macs)
		}
		for _, n := range r.Nodes() {
			ip := n.IP()
			if r.stage.family == "IPv6" {
				ip = n.IPv6()
			}
			node, err := r.askPod(laptop, net.JoinHostPort(ip, fmt.Sprint(r.nodePort)))
			if err == nil && node != n.Name() {
				err = fmt.Errorf("%s serves on the NodePort of %s", node, n.Name())
			}
			if err != nil {
				return err
			}
		}
		return r.mover.agrees(r, name)
	})
	return holder
}

// askPod asks on a connection of its own, and returns the node whose pod answered.
func (r *rig) askPod(from *lab.Client, target string) (node string, err error) {
	resp, err := from.Try("http://"+target, lab.Timeout(200*time.Millisecond))
	if err != nil {
		return "", err
	}
	reply, err := resp.Reply()
	return reply.Node, err
}

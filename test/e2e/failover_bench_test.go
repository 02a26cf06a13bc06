package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/test/lab"
)

// BenchmarkFailover is how long an address has no answer when the node that
// holds it falls silent, as a client with a new connection each 10 ms sees it:
// for two profiles of the speaker, and for keepalived in the same lab with the
// same pods, kube-proxies, probe and fault. Only who moves the address
// differs. `make bench-failover` runs twenty trials of each.
func BenchmarkFailover(b *testing.B) {
	movers := []struct {
		name string
		set  func(*rig)
	}{
		{"quayside-default", func(r *rig) { r.moveByQuayside("default") }},
		{"quayside-fast", func(r *rig) { r.moveByQuayside("fast") }},
		{"keepalived-default", func(r *rig) { r.moveByKeepalived(keepalivedDefault()) }},
		{"keepalived-tuned", func(r *rig) { r.moveByKeepalived(keepalivedTuned()) }},
	}
	peer, err := keepalivedVersion()
	if err != nil {
		peer, movers = fmt.Sprintf("keepalived is left out: %v", err), movers[:2]
	}
	var all []outages
	for _, m := range movers {
		b.Run(m.name, func(b *testing.B) {
			r := newRig(b)
			m.set(r)
			o := outages{mover: m.name}
			for b.Loop() {
				o.lengths = append(o.lengths, r.trial())
			}
			slices.Sort(o.lengths)
			all = append(all, o)
			b.ReportMetric(0, "ns/op") // a trial's length says nothing
			b.ReportMetric(o.median(), "p50-ms")
			b.ReportMetric(o.worst(), "worst-ms")
		})
	}
	if len(all) > 0 {
		printOutages(peer, all)
	}
}

// rig is a cluster of three nodes, each with a pod of Service web: its policy
// is Local, so that nothing behind the address is lost with a node.
type rig struct {
	*lab.Cluster
	b        *testing.B
	laptop   *lab.Client
	nodePort int32
	address  string                   // the Service's
	whole    func(owner string) error // nil when the mover is over the last fault and agrees on the owner
}

func newRig(b *testing.B) *rig {
	r := &rig{Cluster: lab.New(b, lab.Nodes(3)), b: b}
	for n := range r.Nodes() {
		r.Pod(n+1, fmt.Sprintf("web-%d", n+1), lab.Labels{"app": "web"})
	}
	r.Apply(loadBalancer("Local"))
	r.laptop = r.Client("laptop")
	svc, err := r.Kube().CoreV1().Services(r.Namespace()).Get(b.Context(), "web", metav1.GetOptions{})
	if err != nil {
		b.Fatal(err)
	}
	r.nodePort = svc.Spec.Ports[0].NodePort
	return r
}

// moveByQuayside installs Quayside as the chart has it.
func (r *rig) moveByQuayside(profile string) {
	r.Install(lab.Values{"speaker": lab.Values{"profile": profile}})
	r.Apply(lanPool)
	r.Eventually(settle, func() error {
		svc, err := r.Kube().CoreV1().Services(r.Namespace()).Get(r.b.Context(), "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(svc.Status.LoadBalancer.Ingress) == 0 {
			return fmt.Errorf("Service web has no address yet: %v", svc.Status.Conditions)
		}
		r.address = svc.Status.LoadBalancer.Ingress[0].IP
		return nil
	})
	r.whole = func(owner string) error {
		for _, speaker := range r.Quayside().Speakers() {
			var s struct {
				Alive  []string
				Owners map[string]string
			}
			if err := json.Unmarshal([]byte(speaker.Admin("/state")), &s); err != nil {
				return err
			}
			if len(s.Alive) != len(r.Nodes()) || s.Owners[r.address] != owner {
				return fmt.Errorf("the speaker of %s sees %v alive and %s the owner, not %s",
					speaker.Node(), s.Alive, s.Owners[r.address], owner)
			}
		}
		return nil
	}
}

// trial silences the holder of the address, waits for the next one, brings the
// silent node back, and returns how long nobody answered.
func (r *rig) trial() time.Duration {
	holder := r.awaitWhole()
	probe := r.laptop.Probe(r.address+":80", 10*time.Millisecond, 200*time.Millisecond)
	// The cut falls anywhere between two beats of whoever watches the holder.
	time.Sleep(200*time.Millisecond + rand.N(time.Second))
	holder.Fail()
	r.Eventually(settle, func() error {
		node, err := r.askPod(r.address, 80)
		if err == nil && node == holder.Name() {
			err = fmt.Errorf("%s still answers", node)
		}
		return err
	})
	time.Sleep(500 * time.Millisecond) // it goes on answering, or that counts as well
	report := probe.Stop()
	if report.Failed == 0 {
		r.b.Fatalf("%s fell silent and nobody noticed: %s", holder.Name(), report)
	}
	holder.Heal()
	return report.Gap
}

// awaitWhole returns the holder of the address once every node serves, one of
// them answers for the address, and the mover agrees.
func (r *rig) awaitWhole() (holder *lab.Node) {
	r.Eventually(settle, func() error {
		macs := r.laptop.ARP(r.address)
		i := slices.IndexFunc(r.Nodes(), func(n *lab.Node) bool { return slices.Equal(macs, []string{n.MAC()}) })
		if i < 0 {
			return fmt.Errorf("%s is answered by %v, want one node", r.address, macs)
		}
		holder = r.Nodes()[i]
		if err := r.servedBy(holder, r.address, 80); err != nil {
			return err
		}
		for _, n := range r.Nodes() {
			if err := r.servedBy(n, n.IP(), r.nodePort); err != nil {
				return err
			}
		}
		return r.whole(holder.Name())
	})
	return holder
}

// askPod asks on a connection of its own, and returns the node whose pod answered.
func (r *rig) askPod(host string, port int32) (node string, err error) {
	resp, err := r.laptop.Try(fmt.Sprintf("http://%s:%d", host, port), lab.Timeout(200*time.Millisecond))
	if err != nil {
		return "", err
	}
	reply, err := resp.Reply()
	return reply.Node, err
}

func (r *rig) servedBy(n *lab.Node, host string, port int32) error {
	node, err := r.askPod(host, port)
	if err == nil && node != n.Name() {
		err = fmt.Errorf("%s:%d is served by %s, want %s", host, port, node, n.Name())
	}
	return err
}

// outages are what one mover's trials cost, the shortest first.
type outages struct {
	mover   string
	lengths []time.Duration
}

func (o outages) median() float64 {
	n := len(o.lengths)
	return milliseconds(o.lengths[(n-1)/2]+o.lengths[n/2]) / 2
}

func (o outages) worst() float64 { return milliseconds(o.lengths[len(o.lengths)-1]) }

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// printOutages compares each mover with the first and with the second.
func printOutages(title string, all []outages) {
	bases := all[:min(2, len(all))]
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\nTime without an answer when a node dies (%s); ratios are of median / worst\n", title)
	fmt.Fprintf(w, "%-18s\ttrials\tmedian\tworst\t", "mover")
	for _, base := range bases {
		fmt.Fprintf(w, "to %s\t", base.mover)
	}
	fmt.Fprintln(w)
	for _, o := range all {
		fmt.Fprintf(w, "%-18s\t%d\t%.0f ms\t%.0f ms\t", o.mover, len(o.lengths), o.median(), o.worst())
		for _, base := range bases {
			fmt.Fprintf(w, "%.1f / %.1f\t", o.median()/base.median(), o.worst()/base.worst())
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush() // nobody is left to tell that standard output is gone
}

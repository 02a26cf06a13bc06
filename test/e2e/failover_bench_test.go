package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/test/lab"
)

// BenchmarkFailover is how long an address has no answer when the node that
// holds it falls silent, as a client with a new connection each 10 ms sees it.
// `make bench-failover` runs twenty trials of each profile.
func BenchmarkFailover(b *testing.B) {
	for _, profile := range []string{"default", "fast"} {
		b.Run(profile, func(b *testing.B) { benchmarkFailover(b, profile) })
	}
}

func benchmarkFailover(b *testing.B, profile string) {
	c := lab.New(b, lab.Nodes(3))
	c.Install(lab.Values{"speaker": lab.Values{"profile": profile}})
	c.Apply(lanPool)
	for n := range c.Nodes() {
		c.Pod(n+1, fmt.Sprintf("web-%d", n+1), lab.Labels{"app": "web"})
	}
	// Local: every node answers for its own pod, so that nothing behind the
	// address is lost with the node.
	c.Apply(loadBalancer("Local"))
	address, laptop := "", c.Client("laptop")
	c.Eventually(settle, func() error {
		svc, err := c.Kube().CoreV1().Services(c.Namespace()).Get(b.Context(), "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(svc.Status.LoadBalancer.Ingress) == 0 {
			return fmt.Errorf("Service web has no address yet")
		}
		address = svc.Status.LoadBalancer.Ingress[0].IP
		return nil
	})
	var gaps []time.Duration
	for b.Loop() {
		gaps = append(gaps, failOnce(c, laptop, address))
	}
	slices.Sort(gaps)
	b.ReportMetric(0, "ns/op") // a trial's length says nothing
	b.ReportMetric(float64(gaps[len(gaps)/2].Milliseconds()), "p50-ms")
	b.ReportMetric(float64(gaps[len(gaps)-1].Milliseconds()), "worst-ms")
}

// failOnce silences the holder of address, waits for the next one, and brings
// the silent node back.
func failOnce(c *lab.Cluster, laptop *lab.Client, address string) time.Duration {
	mac := laptop.ARPOwner(address, settle)
	holder := c.Nodes()[slices.IndexFunc(c.Nodes(), func(n *lab.Node) bool { return n.MAC() == mac })]
	probe := laptop.Probe(address+":80", 10*time.Millisecond, 200*time.Millisecond)
	time.Sleep(500 * time.Millisecond)
	holder.Fail()
	c.Eventually(settle, func() error {
		_, err := laptop.Try("http://"+address, lab.Timeout(200*time.Millisecond))
		return err
	})
	time.Sleep(500 * time.Millisecond) // it answers, and goes on answering
	report := probe.Stop()
	holder.Heal()
	c.Quayside().Speaker(holder).AwaitReady()
	time.Sleep(2 * time.Second) // the others see it alive again
	return report.Gap
}

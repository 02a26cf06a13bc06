package e2e

import (
	"fmt"
	"testing"
	"time"

	"quayside.io/test/lab"
)

// The speaker that holds an address is stopped politely: no new connection
// fails. A connection that is open at the very moment of the move is cut, as
// whenever an address moves: its next packet reaches a node that does not know
// it. There is one such moment, so those that are cut overlap.
func TestSpeakerStopsWithoutALostConnection(t *testing.T) {
	inPairs(t)
	e := quayside(t, "nftables")
	for n := 1; n <= 3; n++ {
		e.Pod(n, fmt.Sprintf("web-%d", n), lab.Labels{"app": "web"})
	}
	e.Apply(loadBalancer("Cluster"))
	address, laptop := e.serviceAddress("web"), e.Client("laptop")
	e.servedAt(laptop, address) // kube-proxy knows of it, too
	holder := e.owner(laptop, address)
	moved := e.watchMoves(laptop, address)
	speaker := e.Quayside().Speaker(holder)
	speaker.Stop()
	defer speaker.Start()
	if got := laptop.ARPOwner(address, settle); got == holder.MAC() {
		t.Errorf("the speaker of %s has stopped and its node still answers for %s", holder.Name(), address)
	}
	moved("polite stop of "+holder.Name(), 1)
}

// The API server is stopped for 30 s: traffic goes on, announcements stay, and
// everything catches up afterwards.
func TestAPIServerOutage(t *testing.T) {
	beside(t)
	e := quayside(t, "iptables")
	e.serve("video", "store")
	e.Pod(1, "web", lab.Labels{"app": "web"})
	e.Apply(clusterIPServices("video", "store"))
	e.Apply(textbook)
	catchAll := ingressFor("catch-all", "ingressClassName: quayside", "", `""`, "video") // what the prober asks for
	e.Apply(catchAll)
	defer e.Delete(catchAll)
	e.Apply(loadBalancer("Local"))
	address, laptop := e.serviceAddress("web"), e.Client("laptop")
	ingress := e.ingressAddress("catch-all")
	e.until(laptop, ingress, "http://"+ingress+"/", "video")
	e.servedAt(laptop, address)
	holder := e.owner(laptop, address)
	direct := laptop.Probe(address+":80", 50*time.Millisecond, time.Second)
	proxied := laptop.Probe(ingress+":80", 50*time.Millisecond, time.Second)

	e.APIServer().Stop()
	time.Sleep(30 * time.Second)
	if got := laptop.ARP(address); len(got) != 1 || got[0] != holder.MAC() {
		t.Errorf("after 30 s without an API server %s is answered by %v, want %s alone", address, got, holder.MAC())
	}
	if err := e.APIServer().Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for what, p := range map[string]*lab.Prober{"the Service": direct, "the Ingress": proxied} {
		if r := p.Stop(); r.Failed > 0 || len(r.Attempts) < 300 {
			t.Errorf("%s: %s", what, r)
		}
	}
	// Catching up: a Service and an Ingress made now are served.
	e.Apply(`
apiVersion: v1
kind: Service
metadata: {name: after}
spec:
  type: LoadBalancer
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: http}]
`)
	after := e.serviceAddress("after")
	// kube-proxy may be in the longest pause between two attempts to reach the
	// API server: client-go doubles it up to half a minute, and more by chance.
	e.Eventually(2*settle, func() error {
		_, err := laptop.Try("http://"+after, lab.Timeout(time.Second))
		return err
	})
	e.Apply(ingressFor("after", "ingressClassName: quayside", "", "after.example.com", "video"))
	e.until(laptop, ingress, "http://after.example.com/", "video")
}

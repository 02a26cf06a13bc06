package e2e

import (
	"testing"
	"time"

	"quayside.io/test/lab"
)

const catchAll = `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: all}
spec:
  defaultBackend: {service: {name: store, port: {number: 3000}}}
`

// Everything is replaced at once, as by `helm upgrade` with a new image: the
// controllers, a speaker at a time, and the proxies, whose new pods come up on
// other nodes than those that have the address. No new connection fails,
// neither to an Ingress nor to a Service, and a client that keeps its
// connections is asked to come again.
func TestRollout(t *testing.T) {
	inPairs(t)
	e := edge{bare(t), t}
	e.Install(lab.Values{"ingressClass": lab.Values{"default": true}})
	e.Apply(lanPool)
	e.serve("store")
	e.Apply(clusterIPServices("store"))
	e.Apply(catchAll)
	e.lingeringPods()
	e.Apply(loadBalancer("Cluster"))
	laptop := e.Client("laptop")
	ingress, service := e.ingressAddress("all"), e.serviceAddress("web")
	e.until(laptop, ingress, "http://shop.example.com/", "store")
	e.Eventually(settle, func() error {
		_, err := laptop.Try("http://"+service, lab.Timeout(time.Second))
		return err
	})

	judgeIngress, judgeService := e.watchMoves(laptop, ingress), e.watchMoves(laptop, service)
	keeping, kept := make(chan struct{}), make(chan *keeper)
	go func() {
		client := newKeeper(laptop.Transport(), "http://"+ingress)
		defer client.http.CloseIdleConnections()
		for {
			select {
			case <-keeping:
				kept <- client
				return
			case <-time.After(10 * time.Millisecond):
				_, _ = client.ask() // it keeps count
			}
		}
	}()
	began := time.Now()
	e.Quayside().Rollout()
	t.Logf("every pod was replaced in %v", time.Since(began).Round(time.Millisecond))
	time.Sleep(time.Second)
	close(keeping)
	client := <-kept
	// A speaker's update moves an address once, and so does a proxy's.
	moves := len(e.Nodes()) + len(e.Quayside().Proxies())
	judgeIngress("Ingress", moves)
	judgeService("Service", len(e.Nodes()))
	t.Logf("of %d requests %d were the last of their connection, and %d failed: %v", client.asked, client.ended, len(client.failures), client.failures)
	if client.ended == 0 || len(client.failures) > moves {
		t.Errorf("clients that keep their connections: %d were asked to come again, failures: %v", client.ended, client.failures)
	}
}

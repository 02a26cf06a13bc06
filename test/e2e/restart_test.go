package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"quayside.io/test/lab"
)

// remembered returns nil once every speaker and proxy has kept what it knew at a time.
func remembered(c *lab.Cluster, at time.Time) error {
	q := c.Quayside()
	for _, p := range append(q.Speakers(), q.Proxies()...) {
		_, rest, _ := strings.Cut(p.Admin("/metrics"), "\nquayside_last_known_timestamp_seconds ")
		value, _, _ := strings.Cut(rest, "\n")
		kept, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return fmt.Errorf("%s does not say when it kept what it knows: %w", p.Name(), err)
		}
		if was := time.UnixMilli(int64(1000 * kept)); was.Before(at) {
			return fmt.Errorf("%s has kept what it knew at %v, want %v", p.Name(), was, at)
		}
	}
	return nil
}

// Every speaker and proxy is killed while there is no API server. Those that come after
// them announce and serve what these did, and believe each other.
func TestRestartWithoutAnAPIServer(t *testing.T) {
	beside(t)
	e := quayside(t, "nftables")
	for n := 1; n <= 3; n++ {
		e.Pod(n, fmt.Sprintf("web-%d", n), lab.Labels{"app": "web"})
	}
	e.serve("shop")
	roots := e.tlsSecret("tls", "shop.example.com")
	e.Apply(loadBalancer("Cluster") + clusterIPServices("shop") + `
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop}
spec:
  tls: [{hosts: [shop.example.com], secretName: tls}]
  rules: [{host: shop.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: shop, port: {number: 3000}}}}]}}]
`)
	address, edge, laptop := e.serviceAddress("web"), e.ingressAddress("shop"), e.Client("laptop")
	served := func() {
		t.Helper()
		e.servedAt(laptop, address)
		e.Eventually(settle, func() error {
			resp, err := laptop.Try("https://shop.example.com/", lab.Via(edge+":443"), lab.TLS(verify(roots, "shop.example.com")), lab.Timeout(time.Second))
			if err == nil && resp.Status != 200 {
				err = fmt.Errorf("status %d", resp.Status)
			}
			return err
		})
	}
	served()
	e.announced(address, e.owner(laptop, address).Name(), "eth0")
	noted := time.Now()
	e.Apply("{apiVersion: v1, kind: Service, metadata: {name: noted}, spec: {ports: [{port: 80}]}}")
	e.Eventually(settle, func() error { return remembered(e.Cluster, noted) })

	e.APIServer().Stop()
	q := e.Quayside()
	pods := append(q.Speakers(), q.Proxies()...)
	for _, p := range pods {
		p.Kill()
	}
	if macs := laptop.WhoHas(address); len(macs) > 0 {
		t.Fatalf("%v answer for %s without a speaker", macs, address)
	}
	for _, p := range pods {
		p.Start()
	}
	served()

	// They believe each other: one takes over from another, and nobody is accused.
	first := e.owner(laptop, address)
	q.Speaker(first).Kill()
	var second *lab.Node
	e.Eventually(settle, func() error {
		if second = e.owner(laptop, address); second.Name() == first.Name() {
			return fmt.Errorf("the speaker of %s is dead, and its node still answers", first.Name())
		}
		return nil
	})
	served()
	q.Speaker(first).Start()
	if err := e.APIServer().Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.announced(address, second.Name(), "eth0")
	e.Eventually(settle, func() error { return e.agree(address, second.Name()) })
	served()
	for _, p := range pods {
		if log := p.Log(); strings.Contains(log, "spoke to the speaker") {
			t.Errorf("%s accuses somebody of a forgery:\n%s", p.Name(), log)
		}
	}
}

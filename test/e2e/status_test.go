package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"quayside.io/controller/explain"
	"quayside.io/test/lab"
)

// quayside status, run by a person at a machine on the LAN, says on one screen
// who has which address, which node answers for it, and what is wrong.
func TestStatusOfTheCluster(t *testing.T) {
	e := quayside(t, "nftables")
	e.Pod(1, "web", lab.Labels{"app": "web"})
	e.Apply(loadBalancer("Cluster"))
	e.Apply(ingressFor("lost", "ingressClassName: quayside", "", "lost.example.com", "nowhere"))
	address, laptop := e.serviceAddress("web"), e.Client("laptop")
	holder := e.owner(laptop, address)
	status := func(more ...string) string {
		return laptop.Exec(append([]string{e.Quayside().Binary(), "status", "--kubeconfig", e.Kubeconfig()}, more...)...)
	}
	e.Eventually(settle, func() error {
		screen := status()
		for _, want := range []string{e.Namespace() + "/web", address, holder.Name() + " (l2)", "lost.example.com/ -> nowhere:3000", "MissingService"} {
			if !strings.Contains(screen, want) {
				return fmt.Errorf("%q is not on the screen:\n%s", want, screen)
			}
		}
		return nil
	})
	var report explain.Report
	if err := json.Unmarshal([]byte(status("-o", "json")), &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Nodes) != 3 || !report.Nodes[0].Speaker || len(report.Problems) == 0 {
		t.Errorf("as JSON: %+v", report)
	}
}

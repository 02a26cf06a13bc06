package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"quayside.io/command/explain"
	"quayside.io/test/lab"
)

// quayside trace, run by a person at a machine on the LAN, explains a path that
// works, and names the first link of one that does not.
func TestTraceInTheCluster(t *testing.T) {
	beside(t)
	e := quayside(t, "nftables")
	e.serve("video")
	e.Apply(clusterIPServices("video"))
	e.Apply(ingressFor("films", "ingressClassName: quayside", "", "films.example.com", "video"))
	e.Apply(loadBalancer("Cluster")) // without a pod
	address, laptop := e.ingressAddress("films"), e.Client("laptop")
	trace := func(target string) string {
		return laptop.Exec("sh", "-c", e.Quayside().Binary()+" trace --kubeconfig "+e.Kubeconfig()+" "+target+" 2>&1 || echo exit code $?")
	}
	e.until(laptop, address, "http://films.example.com/", "video")
	for target, wants := range map[string][]string{
		"http://films.example.com/new":             {address, "by l2 on eth0", "/new matches Ingress " + e.Namespace() + "/films", "Nothing on this path is broken"},
		"--live http://films.example.com/new":      {address + " by ARP", "live connect", address + ":80 in ", "answers 200 OK in "},
		"--live service/" + e.Namespace() + "/web": {"live connect", `The first broken link is "endpoints"`},
		"http://nobody.example.com/":               {"404: no Ingress has a rule for host nobody.example.com", "exit code 1"},
		"service/" + e.Namespace() + "/web":        {"by l2 on eth0", "no pod matches the selector app=web", `The first broken link is "endpoints"`, "exit code 1"},
	} {
		e.Eventually(settle, func() error {
			said := trace(target)
			for _, want := range wants {
				if !strings.Contains(said, want) {
					return fmt.Errorf("%q is not said:\n%s", want, said)
				}
			}
			return nil
		})
	}
}

// quayside status, run by a person at a machine on the LAN, says on one screen
// who has which address, which node answers for it, and what is wrong.
func TestStatusOfTheCluster(t *testing.T) {
	beside(t)
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
	// The same as a plugin of kubectl, with a list of files as $KUBECONFIG, one of which
	// does not exist, and without the controller.
	plugin := filepath.Join(t.TempDir(), "kubectl-quayside")
	if err := os.Symlink(e.Quayside().Binary(), plugin); err != nil {
		t.Fatal(err)
	}
	for _, more := range []string{"", " --local"} {
		said := laptop.Exec("sh", "-c", "KUBECONFIG=/nowhere/config:"+e.Kubeconfig()+" "+plugin+" status"+more+" 2>&1")
		if !strings.Contains(said, "lost.example.com/ -> nowhere:3000") || strings.Contains(said, "note:") {
			t.Errorf("kubectl quayside status%s:\n%s", more, said)
		}
	}
	var report explain.Report
	if err := json.Unmarshal([]byte(status("--local", "-o", "json")), &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Nodes) != 3 || !report.Nodes[0].Speaker || len(report.Problems) == 0 {
		t.Errorf("as JSON: %+v", report)
	}
}

// ran is what a command of quayside says to the administrator, asked from a machine on the LAN.
func (e edge) ran(from *lab.Client, into any, command string) error {
	said := from.Exec("sh", "-c", e.Quayside().Binary()+" "+command+" -o json --kubeconfig "+e.Kubeconfig()+" 2>/dev/null || true")
	if err := json.Unmarshal([]byte(said), into); err != nil {
		return fmt.Errorf("%s: %w: %s", command, err, said)
	}
	return nil
}

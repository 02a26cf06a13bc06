package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"quayside.io/test/lab"
)

// What docs/bgp.md shows of FRR and of BIRD, with the addresses of this lab: both have a
// session with each of the two nodes, and BFD with both, and know two ways to a Service.
func TestRoutersAsThePageConfiguresThem(t *testing.T) {
	beside(t)
	if _, err := exec.LookPath("bird"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("no BIRD here: run `make packages` as root")
	}
	e := three(t)
	spot := e.Client("bird")
	ofPage := func(heading, fence, router string) string {
		t.Helper()
		return strings.NewReplacer("10.0.0.11", e.Node(1).IP(), "10.0.0.12", e.Node(2).IP(), "10.0.0.1", router, "10.0.0.2", router,
			"name: lan", "name: page", "[lan]", "[page]").Replace(e.ofBGPPage(heading, fence))
	}
	frr := e.Router("page", ofPage("## FRR", "```", ""))
	ask := e.birdOn(spot, ofPage("## BIRD 2", "```", spot.IP()))

	objects := ofPage("# BGP", "```yaml", frr.IP()) + "---\n" + ofPage("With BFD", "```yaml", spot.IP())
	// Both routers are asked for BFD, and the third node is neighbour of none.
	objects = strings.Replace(objects, "peerAddress: "+frr.IP()+"}", "peerAddress: "+frr.IP()+", bfdProfile: quick}", 1)
	e.Apply(objects + `
---
apiVersion: v1
kind: Service
metadata: {name: web, annotations: {quayside.io/address-pool: page}}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80, targetPort: http}]}
`)
	e.Pod(3, "web", lab.Labels{"app": "web"})
	address, hops := e.serviceAddress("web"), e.hops(e.Node(1), e.Node(2))
	e.Eventually(settle, func() error {
		got, err := nextHops(frr, address, "")
		if err == nil && !slices.Equal(got, hops) {
			err = fmt.Errorf("FRR sends %s by %v, want %v", address, got, hops)
		}
		if err != nil {
			return err
		}
		return bfdUp(frr, hops)
	})
	e.Eventually(settle, func() error {
		out, err := ask("show route for " + address)
		if err != nil {
			return err
		}
		sessions, err := ask("show bfd sessions")
		if err != nil {
			return err
		}
		kernel := spot.Exec("ip", "route", "show", address)
		for _, hop := range hops {
			if !strings.Contains(out, hop) || !strings.Contains(sessions, hop) || !strings.Contains(kernel, hop) {
				return fmt.Errorf("BIRD has no way by %s, or no BFD with it:\n%s\n%s\n%s", hop, out, sessions, kernel)
			}
		}
		if n := strings.Count(sessions, " Up "); n != len(hops) {
			return fmt.Errorf("%d BFD sessions of BIRD are up, want %d:\n%s", n, len(hops), sessions)
		}
		return nil
	})
}

// ofBGPPage is the first block with such a fence that docs/bgp.md has after heading.
func (e edge) ofBGPPage(heading, fence string) string {
	e.t.Helper()
	page, err := os.ReadFile("../../docs/bgp.md")
	if err != nil {
		e.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), heading)
	_, rest, _ = strings.Cut(rest, fence+"\n")
	text, _, found := strings.Cut(rest, "```")
	if !found {
		e.t.Fatalf("docs/bgp.md has no block after %q", heading)
	}
	return text
}

// birdOn starts BIRD on a client, and returns how to ask it.
func (e edge) birdOn(c *lab.Client, config string) (ask func(string) (string, error)) {
	e.t.Helper()
	dir := e.t.TempDir()
	file, socket := filepath.Join(dir, "bird.conf"), filepath.Join(dir, "bird.ctl")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		e.t.Fatal(err)
	}
	bird := exec.Command("bird", "-f", "-c", file, "-s", socket, "-P", filepath.Join(dir, "bird.pid"))
	if err := c.Start(bird); err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() {
		_ = bird.Process.Kill()
		_ = bird.Wait() // "killed"
	})
	ask = func(command string) (string, error) {
		out, err := exec.Command("birdc", "-s", socket, command).CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("%w: %s", err, out)
		}
		return string(out), nil
	}
	e.Eventually(settle, func() error { _, err := ask("show status"); return err })
	return ask
}

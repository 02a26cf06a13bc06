package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"quayside.io/command/explain"
	"quayside.io/test/lab"
)

// broken is one fault that a person brought about, and what that person must be told who
// asks `quayside status` or `quayside trace`: in one sentence the object, the cause and
// the next step.
//
// In all of it $ROW is the name of the row, which its objects and its host have, $NS the
// namespace of the test, $OTHER that of somebody else, and $NODE1 an address of a node.
type broken struct {
	name    string
	objects string
	make    func(e edge, name string) // what no manifest can
	mend    func(e edge)              // for the next test
	asks    string                    // the target of a trace; "": status, with these flags
	flags   string
	on      string // who is named
	link    string // of a trace: the first that is broken
	says    string
	next    string
}

// Each of these faults is named with its object, its cause and the next step, in one
// sentence, by the controller, or with --live by an answer, where nothing else tells: to
// somebody who is asked for nothing but a URL, a Service, or nothing at all. All of them
// are there at the same time, so that no answer can be about whatever is wrong just then.
func TestBrokenClustersNameTheirCause(t *testing.T) {
	beside(t)
	e := three(t)
	rows := slices.Concat(addressCauses(), announcementCauses(), endpointCauses(), routeCauses(), podCauses(), certificateCauses())
	c := causes{edge: e, laptop: e.Client("laptop"), admin: e.Kubeconfig(), other: e.Namespace() + "-other", dir: t.TempDir()}
	c.words = strings.NewReplacer("$NS", e.Namespace(), "$OTHER", c.other, "$NODE1", e.Node(1).IP())
	makeNamespace(t, e.Cluster, c.other)
	t.Cleanup(func() {
		if err := e.Kube().CoreV1().Namespaces().Delete(context.Background(), c.other, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})

	before := poolCauses()
	c.withoutPool(func() {
		c.build(before)
		c.ask(before)
	})
	c.stage()
	defer func() {
		for _, row := range rows {
			if row.mend != nil {
				row.mend(e)
			}
		}
	}()
	began := time.Now()
	c.build(rows)
	built := time.Now()
	c.ask(rows)
	t.Logf("%d faults are named; the last %d were built in %v and asked about in %v", len(before)+len(rows), len(rows),
		built.Sub(began).Round(time.Millisecond), time.Since(built).Round(time.Millisecond))
	if len(before)+len(rows) < 30 {
		t.Errorf("only %d faults are asked about, want 30", len(before)+len(rows))
	}
}

// causes is a cluster with all faults in it.
type causes struct {
	edge
	laptop     *lab.Client
	admin      string // a kubeconfig
	other, dir string
	words      *strings.Replacer
}

// withoutPool takes the lane's pool away for as long as f runs.
func (c *causes) withoutPool(f func()) {
	pools := c.Dynamic().Resource(schema.GroupVersionResource{Group: "quayside.io", Version: "v1alpha1", Resource: "ipaddresspools"})
	if err := pools.Delete(c.t.Context(), "lan", metav1.DeleteOptions{}); err != nil {
		c.t.Fatal(err)
	}
	back := sync.OnceFunc(func() {
		if err := c.TryApply(dualPool); err != nil {
			c.t.Error(err)
		}
	})
	c.t.Cleanup(back)
	f()
	back()
}

// stage is what several rows need.
func (c *causes) stage() {
	c.t.Helper()
	c.Pod(1, "idle", lab.Labels{"app": "idle"}, lab.NotReady())
	c.Pod(1, "web", lab.Labels{"app": "web"})
	c.Pod(2, "second", lab.Labels{"app": "second"})
	c.Pod(3, "third", lab.Labels{"app": "third"})
	c.Apply(c.words.Replace(causesPools) + clusterIPServices("web"))
	// Who has an address before others ask for it.
	c.Apply(askingFor("holder", "address-pool: full", "") + askingFor("sharer", "loadBalancerIPs: 10.77.0.193, metallb.io/allow-shared-ip: ours", ""))
	for _, name := range []string{"holder", "sharer"} {
		c.serviceAddress(name)
	}
	c.labelNode(c.Node(3).Name(), excludeLabel, "true")
	c.t.Cleanup(func() { c.labelNode(c.Node(3).Name(), excludeLabel, "") })
}

// causesPools has a pool for each fault of pools. Those in front are as they should be.
const causesPools = `
apiVersion: quayside.io/v1alpha1
kind: IPAddressPool
metadata: {name: full}
spec: {addresses: [10.77.0.190/32], autoAssign: false}
---
apiVersion: quayside.io/v1alpha1
kind: IPAddressPool
metadata: {name: shared}
spec: {addresses: [10.77.0.193/32], autoAssign: false}
---
apiVersion: quayside.io/v1alpha1
kind: IPAddressPool
metadata: {name: draining}
spec: {addresses: [10.77.0.191/32], autoAssign: false, drain: true}
---
apiVersion: quayside.io/v1alpha1
kind: IPAddressPool
metadata: {name: six}
spec: {addresses: ["fd77::190/128"], autoAssign: false}
---
apiVersion: quayside.io/v1alpha1
kind: IPAddressPool
metadata: {name: elsewhere}
spec: {addresses: [10.77.0.194/32], serviceAllocation: {namespaces: [nowhere]}}
---
apiVersion: quayside.io/v1alpha1
kind: IPAddressPool
metadata: {name: dark}
spec: {addresses: [10.77.0.192/32], autoAssign: false}
---
apiVersion: quayside.io/v1alpha1
kind: IPAddressPool
metadata: {name: far}
spec: {addresses: [10.88.0.1/32], autoAssign: false}
---
apiVersion: quayside.io/v1alpha1
kind: IPAddressPool
metadata: {name: of-nodes}
spec: {addresses: [$NODE1/32], autoAssign: false}
---
apiVersion: quayside.io/v1alpha1
kind: IPAddressPool
metadata: {name: over}
spec: {addresses: [10.77.0.180-10.77.0.185], autoAssign: false}
---
apiVersion: quayside.io/v1alpha1
kind: IPAddressPool
metadata: {name: overlapping}
spec: {addresses: [10.77.0.183-10.77.0.188], autoAssign: false}
---
apiVersion: quayside.io/v1alpha1
kind: L2Advertisement
metadata: {name: near}
spec: {ipAddressPools: [lan, full, shared, draining, six, elsewhere, of-nodes, over, overlapping]}
---
apiVersion: quayside.io/v1alpha1
kind: BGPAdvertisement
metadata: {name: far}
spec: {ipAddressPools: [far]}
---
apiVersion: quayside.io/v1alpha1
kind: BGPPeer
metadata: {name: unplugged}
spec: {myASN: 64512, peerASN: 64513, peerAddress: 10.77.0.250}
---
`

// of are the words of a row.
func (c *causes) of(row broken, text string) string {
	return c.words.Replace(strings.ReplaceAll(text, "$ROW", row.name))
}

// build makes what is wrong, all of it at the same time.
func (c *causes) build(rows []broken) {
	c.t.Helper()
	var making errgroup.Group
	making.SetLimit(8) // the API server has the same two processors
	for _, row := range rows {
		making.Go(func() error {
			if err := c.TryApply(c.of(row, row.objects)); err != nil {
				return fmt.Errorf("%s: %w", row.name, err)
			}
			return nil
		})
	}
	if err := making.Wait(); err != nil {
		c.t.Fatal(err)
	}
	for _, row := range rows {
		if row.make != nil {
			row.make(c.edge, row.name)
		}
	}
}

// ask puts every question until all are answered as they should be: facts take a moment.
func (c *causes) ask(rows []broken) {
	c.t.Helper()
	left := rows
	deadline := time.Now().Add(settle)
	for {
		why := c.round(left)
		left = slices.DeleteFunc(slices.Clone(left), func(row broken) bool { return why[row.name] == "" })
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			for _, row := range left {
				c.t.Errorf("%s: %s", row.name, why[row.name])
			}
			return
		}
		time.Sleep(300 * time.Millisecond)
	}
}

// round asks for every row once, and returns what is wrong with the answers.
func (c *causes) round(rows []broken) map[string]string {
	var mu sync.Mutex
	why, reports := map[string]string{}, map[string]func() *explain.Report{}
	for _, row := range rows {
		if row.asks == "" && reports[row.flags] == nil {
			reports[row.flags] = sync.OnceValue(func() *explain.Report {
				report := &explain.Report{}
				c.told(report, "status "+row.flags)
				return report
			})
		}
	}
	var asking errgroup.Group
	asking.SetLimit(3)
	for _, row := range rows {
		asking.Go(func() error {
			var sentences []string
			if row.asks == "" {
				sentences = sentencesAbout(reports[row.flags](), c.of(row, row.on))
			} else {
				path := &explain.Path{}
				c.told(path, "trace "+c.of(row, row.asks))
				first, _ := path.FirstBroken()
				if first.Name == row.link {
					sentences = []string{first.Says}
				} else {
					sentences = []string{fmt.Sprintf("(the first broken link is %q, not %q: %+v)", first.Name, row.link, path.Links)}
				}
			}
			wanted := func(said string) bool {
				return strings.Contains(said, c.of(row, row.says)) && strings.Contains(said, row.next) &&
					(row.asks == "" || strings.Contains(said, c.of(row, row.on)))
			}
			if row.says == "" || row.next == "" || row.on == "" || !slices.ContainsFunc(sentences, wanted) {
				mu.Lock()
				defer mu.Unlock()
				why[row.name] = fmt.Sprintf("of %q this is said: %q\nwant %q and %q", c.of(row, row.on), sentences, c.of(row, row.says), row.next)
			}
			return nil
		})
	}
	_ = asking.Wait() // they return no error
	return why
}

// told is what a command of quayside says, by the controller: were the cluster judged by
// the command itself, it would say so.
func (c *causes) told(into any, command string) {
	said, err := os.CreateTemp(c.dir, "said")
	if err != nil {
		c.t.Error(err)
		return
	}
	defer said.Close()
	notes := said.Name() + "-notes"
	c.laptop.Exec("sh", "-c", fmt.Sprintf("%s %s -o json --kubeconfig %s >%s 2>%s || true", c.Quayside().Binary(), command, c.admin, said.Name(), notes))
	if text, err := os.ReadFile(notes); err != nil || strings.Contains(string(text), "note:") {
		c.t.Errorf("%s: %v %s", command, err, text)
	}
	if err := json.NewDecoder(said).Decode(into); err != nil {
		c.t.Errorf("%s: %v", command, err)
	}
}

// sentencesAbout are what a report says of an object.
func sentencesAbout(r *explain.Report, object string) (sentences []string) {
	for _, p := range r.Problems {
		if p.Object == object {
			sentences = append(sentences, p.Message)
		}
	}
	return sentences
}

// askingFor is a load balancer of that name with such annotations. Of its spec it has
// what is given, and else what works.
func askingFor(name, annotations, spec string) string {
	if annotations != "" {
		annotations = "metallb.io/" + annotations
	}
	for _, usual := range []string{"selector: {app: web}", "ports: [{name: http, port: 80, targetPort: http}]"} {
		if key, _, _ := strings.Cut(usual, " "); !strings.Contains(spec, key) {
			spec += "  " + usual + "\n"
		}
	}
	return fmt.Sprintf("---\napiVersion: v1\nkind: Service\nmetadata: {name: %s, annotations: {%s}}\nspec:\n  type: LoadBalancer\n%s", name, annotations, spec)
}

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"quayside.io/test/chart"
	"quayside.io/test/lab"
)

// olderChart is that of a release from before the proxies had a namespace of their own,
// the gossip key was changed by itself, and a restart outlived the API server.
const olderChart = "../chart/testdata/quayside-0.0.9.tgz"

// A release goes from the packed chart of an older one to today's with its own values,
// and back, and away. An upgrade and a rollback lose nothing: whatever has an address
// keeps it, and no new connection fails. What the end leaves is what the pages say.
func TestReleaseComesAndGoes(t *testing.T) {
	inPairs(t)
	e := edge{share(t, "fresh"), t}
	var before map[string]bool
	e.Eventually(settle, func() (err error) {
		before, err = e.everything()
		return err
	})
	archive, err := chart.Pack(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	older, err := chart.NewRelease("quayside", lab.SystemNamespace, olderChart, lab.Values{
		"controller":   lab.Values{"extraArgs": []any{"--lease-duration=5s"}},
		"proxy":        lab.Values{"gracePeriodSeconds": 10}, // half of it, while addresses move away from it, a proxy goes on accepting
		"ingressClass": lab.Values{"default": true},
	})
	if err != nil {
		t.Fatal(err)
	}
	e.InstallRelease(older)
	t.Cleanup(func() { _ = e.Uninstall(context.Background()) }) // where the test did not get that far
	// The pool goes with its kind.
	if err := e.TryApply(lanPool); err != nil {
		t.Fatal(err)
	}
	e.serve("store")
	e.Apply(clusterIPServices("store"))
	e.Apply(catchAll)
	e.lingeringPods()
	e.Apply(loadBalancer("Cluster"))
	laptop := e.Client("laptop")
	ingress, service := e.ingressAddress("all"), e.serviceAddress("web")
	served := func(revision string) {
		t.Helper()
		if now := e.ingressAddress("all"); now != ingress {
			t.Errorf("%s: Ingresses were at %s and are at %s", revision, ingress, now)
		}
		if now := e.serviceAddress("web"); now != service {
			t.Errorf("%s: the Service was at %s and is at %s", revision, service, now)
		}
		e.until(laptop, ingress, "http://shop.example.com/", "store")
		e.reached(laptop, service)
	}
	served("older")
	e.awaitOwners("Node")
	change := func(revision string, to *chart.Release) {
		t.Helper()
		judgeIngress, judgeService := e.watchMoves(laptop, ingress), e.watchMoves(laptop, service)
		e.ChangeRelease(to)
		// A speaker's update moves an address once, and so does a proxy's.
		judgeIngress(revision+": Ingress", len(e.Nodes())+len(e.Quayside().Proxies()))
		judgeService(revision+": Service", len(e.Nodes()))
		served(revision)
	}

	newer, err := older.Upgrade(archive, e.Config())
	if err != nil {
		t.Fatal(err)
	}
	workloads, err := chart.Workloads(newer.Objects)
	if err != nil {
		t.Fatal(err)
	}
	if args := strings.Join(workloads["controller"].Template.Spec.Containers[0].Args, " "); !strings.Contains(args, "--members-key-rotation=720h") || !strings.Contains(args, "--lease-duration=5s") {
		t.Errorf("the controller has not got a default of the newer chart, or has lost a value of the older: %s", args)
	}
	if n := workloads["proxy"].Namespace; n != lab.SystemNamespace {
		t.Errorf("the upgrade moves the proxies to %s, where their Service gets another address", n)
	}
	change("newer", newer)
	change("rolled back", older)
	newer, err = older.Upgrade(archive, e.Config())
	if err != nil {
		t.Fatal(err)
	}
	change("newer again", newer)

	e.awaitOwners("ClusterRole")
	if err := e.Uninstall(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.awaitLeft(before, append(leftByUninstall(), "ipaddresspools.quayside.io /lan"))
}

// awaitOwners waits until each SpeakerStatus has an owner of that kind and no other, and the
// Lease, which never belongs to a Node, has the release's.
func (e edge) awaitOwners(kind string) {
	e.t.Helper()
	e.Eventually(2*settle, func() error {
		for _, n := range e.Nodes() {
			s, err := e.speakerStatus(n.Name())
			if err != nil {
				return err
			}
			if len(s.OwnerReferences) != 1 || s.OwnerReferences[0].Kind != kind {
				return fmt.Errorf("the SpeakerStatus of %s is owned by %+v, not by a %s", n.Name(), s.OwnerReferences, kind)
			}
		}
		lease, err := e.Kube().CoordinationV1().Leases(lab.SystemNamespace).Get(e.t.Context(), "quayside-controller", metav1.GetOptions{})
		if err != nil || kind == "Node" {
			return err
		}
		if len(lease.OwnerReferences) != 1 || lease.OwnerReferences[0].Kind != kind {
			return fmt.Errorf("the Lease is owned by %+v, not by a %s", lease.OwnerReferences, kind)
		}
		return nil
	})
}

// leftByUninstall is what docs/install.md says that `helm uninstall` leaves.
func leftByUninstall() []string {
	left := []string{
		// The namespace, which Helm did not make alone, with what Kubernetes has in each.
		"namespaces /quayside-system", "serviceaccounts quayside-system/default", "configmaps quayside-system/kube-root-ca.crt",
		// The kinds of our own, since with them the objects of the user's would go.
		"apiservices.apiregistration.k8s.io /v1alpha1.quayside.io",
	}
	for _, kind := range ourKinds() {
		left = append(left, "customresourcedefinitions.apiextensions.k8s.io /"+kind)
	}
	return left
}

// ourKinds are the names of the CRDs.
func ourKinds() []string {
	kinds := []string{"bfdprofiles", "bgpadvertisements", "bgppeers", "communities", "ipaddresspools", "l2advertisements", "speakerstatuses"}
	for i := range kinds {
		kinds[i] += ".quayside.io"
	}
	return kinds
}

// awaitLeft waits until exactly these objects are in the cluster beyond those before and
// those of the test's own namespace.
func (e edge) awaitLeft(before map[string]bool, want []string) {
	e.t.Helper()
	slices.Sort(want)
	e.Eventually(2*settle, func() error {
		now, err := e.everything()
		if err != nil {
			return err
		}
		maps.DeleteFunc(now, func(name string, _ bool) bool {
			return before[name] || strings.Contains(name, " "+e.Namespace()+"/") || name == "namespaces /"+e.Namespace()
		})
		if got := slices.Sorted(maps.Keys(now)); !slices.Equal(got, want) {
			return fmt.Errorf("in the cluster is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		return nil
	})
}

// everything is what the API server has, but for what comes and goes by itself: Events,
// and what it keeps of addresses.
func (e edge) everything() (map[string]bool, error) {
	all := map[string]bool{}
	lists, err := discovery.ServerPreferredResources(e.Kube().Discovery())
	if err != nil {
		return nil, err
	}
	lists = discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "get"}}, lists)
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			if slices.Contains([]string{"events", "ipaddresses", "endpoints", "componentstatuses"}, r.Name) {
				continue
			}
			resource := version.WithResource(r.Name)
			objects, err := e.Dynamic().Resource(resource).List(context.Background(), metav1.ListOptions{})
			if err != nil {
				return nil, fmt.Errorf("list %s: %w", resource, err)
			}
			for _, o := range objects.Items {
				if o.GetDeletionTimestamp() == nil || o.GetKind() == "Namespace" {
					all[resource.GroupResource().String()+" "+o.GetNamespace()+"/"+o.GetName()] = true
				}
			}
		}
	}
	return all, nil
}

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	source "quayside.io/cluster"
	"quayside.io/cluster/snapshot"
)

// Services share a watch of their EndpointSlices: of what a real server has, what is
// referred to is read, one more or less changes nothing about the others, and what moves to
// another Service by its label or is deleted goes.
func TestSourceSharesWatchesOfEndpointSlices(t *testing.T) {
	beside(t)
	c := bare(t)
	_, kubeconfig := newWire(t, c)
	api, err := source.NewAPI(source.APIOptions{
		Kubeconfig: source.Kubeconfig{File: kubeconfig}, Kinds: []snapshot.Kind{snapshot.EndpointSlice}, Referenced: []snapshot.Kind{snapshot.EndpointSlice},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer running(t, api.Run)()
	slice := func(i int, service string) {
		c.Apply(fmt.Sprintf("{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: shared-%d, namespace: %s, labels: {kubernetes.io/service-name: %q}}, addressType: IPv4, endpoints: []}",
			i, c.Namespace(), service))
	}
	var all []snapshot.Key
	for i := range 12 {
		name := fmt.Sprint("of-", i)
		slice(i, name)
		all = append(all, snapshot.Key{Namespace: c.Namespace(), Name: name})
	}
	has := func(want ...int) {
		t.Helper()
		c.Eventually(settle, func() error {
			var got []int
			for _, s := range api.Snapshot().EndpointSlices.Sorted() {
				var i int
				if _, err := fmt.Sscanf(strings.TrimPrefix(s.Name, "shared-"), "%d", &i); err == nil {
					got = append(got, i)
				}
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				return fmt.Errorf("read %v, want %v; faults %v", got, want, api.Snapshot().Faults)
			}
			return nil
		})
	}
	<-api.Refer(snapshot.EndpointSlice, all[:10])
	has(0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
	<-api.Refer(snapshot.EndpointSlice, all[1:11])
	has(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	slice(1, "of-11") // which is not referred to
	has(2, 3, 4, 5, 6, 7, 8, 9, 10)
	slice(11, "of-2")
	has(2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
	c.Delete(fmt.Sprintf("{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: shared-3, namespace: %s}}", c.Namespace()))
	has(2, 4, 5, 6, 7, 8, 9, 10, 11)
	<-api.Refer(snapshot.EndpointSlice, all)
	has(0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11)
}

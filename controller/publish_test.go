package controller_test

import (
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/controller"
)

// Ingresses name the nodes on whose network proxies are ready, as soon as one is.
func TestIngressesNameTheNodesOfProxies(t *testing.T) {
	f := manifests(t, world+`
---
apiVersion: v1
kind: Node
metadata: {name: there}
status: {addresses: [{type: InternalIP, address: 10.0.0.2}]}
`)
	start(t, controller.Options{Source: f.Source, Writer: f, PublishHosts: snapshot.Key{Namespace: "edge", Name: "proxies"}})
	status := func() (list []string) {
		in, _ := f.Snapshot().Ingresses.Get(snapshot.Key{Namespace: "default", Name: "lost"})
		for _, at := range in.Status.LoadBalancer.Ingress {
			list = append(list, at.IP)
		}
		return list
	}
	for _, nodes := range [][]string{{"here"}, {"here", "there"}} {
		slice := &discoveryv1.EndpointSlice{}
		slice.Namespace, slice.Name, slice.Labels = "edge", "proxies-1", map[string]string{discoveryv1.LabelServiceName: "proxies"}
		for _, node := range nodes {
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{NodeName: &node})
		}
		f.Put(slice)
		eventually(t, "every address in the status", func() bool { return len(status()) == len(nodes) })
	}
	if got := status(); got[0] != "10.0.0.1" || got[1] != "10.0.0.2" {
		t.Errorf("the status names %v", got)
	}
}

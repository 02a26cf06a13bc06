// Command endpoints is kube-proxy's own code, asked which endpoints of a Service a node takes
// traffic to. Services with their EndpointSlices are read from standard input, one JSON object
// each, and what becomes of each is written. See lab.NewKubeProxyOracle.
package main

import (
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/kubernetes/pkg/proxy"
)

// question is a Service as a node sees it, in one family.
type question struct {
	Service *corev1.Service
	Slices  []*discoveryv1.EndpointSlice
	Node    string
	Labels  map[string]string // of the node
	Family  corev1.IPFamily
}

// answer is by the names of the ports.
type answer map[string]serves

type serves struct {
	Cluster, Local []string // the endpoints by either policy, if the Service has it
	Reachable      bool     // there is one, on whatever node
}

func (q *question) answer() answer {
	services, endpoints := proxy.ServicePortMap{}, proxy.EndpointsMap{}
	seen := proxy.NewServiceChangeTracker(q.Family, nil, nil)
	seen.Update(nil, q.Service)
	services.Update(seen)
	heard := proxy.NewEndpointsChangeTracker(q.Family, q.Node, nil, nil)
	for _, s := range q.Slices {
		heard.EndpointSliceUpdate(s, false)
	}
	endpoints.Update(heard)
	out := answer{}
	for name, service := range services {
		cluster, local, _, reachable := proxy.CategorizeEndpoints(endpoints[name], service, q.Node, q.Labels)
		out[name.Port] = serves{texts(cluster), texts(local), reachable}
	}
	return out
}

func texts(list []proxy.Endpoint) (out []string) {
	for _, e := range list {
		out = append(out, e.String())
	}
	return out
}

func main() {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var asked question
		switch err := in.Decode(&asked); {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			log.Fatal(err)
		}
		if err := out.Encode(asked.answer()); err != nil {
			log.Fatal(err)
		}
	}
}

package controller_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"quayside.io/cluster/snapshot"
	"quayside.io/controller"
	"quayside.io/controller/assign"
	"quayside.io/proxy/route"
	"quayside.io/speaker/announce"
)

const troubled = `
apiVersion: v1
kind: Node
metadata: {name: here}
status: {addresses: [{type: InternalIP, address: 10.0.0.1}]}
---
apiVersion: quayside.io/v1alpha1
kind: SpeakerStatus
metadata: {name: here}
status: {interfaces: [{name: eth0, mac: "02:00:00:00:00:01", prefixes: [192.0.2.1/24], up: true}]}
---
apiVersion: quayside.io/v1alpha1
kind: IPAddressPool
metadata: {name: main}
spec: {addresses: [192.0.2.0/30]}
---
apiVersion: v1
kind: Service
metadata: {name: asks-outside, annotations: {quayside.io/loadBalancerIPs: 203.0.113.1}}
spec: {type: LoadBalancer, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: given-by-another}
spec: {type: LoadBalancer, ports: [{port: 80}]}
status: {loadBalancer: {ingress: [{ip: 203.0.113.9}]}}
---
apiVersion: v1
kind: Service
metadata: {name: lists-an-interface}
spec: {type: ClusterIP, externalIPs: [192.0.2.1], ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: lost-its-pool, annotations: {quayside.io/ip-allocated-from-pool: gone}}
spec: {type: LoadBalancer, ports: [{port: 80}]}
status: {loadBalancer: {ingress: [{ip: 198.51.100.1, ipMode: VIP}]}}
---
apiVersion: v1
kind: Service
metadata: {name: without-endpoints, creationTimestamp: "2026-11-20T10:00:00Z"}
spec: {type: LoadBalancer, externalTrafficPolicy: Local, ports: [{port: 80}]}
status: {loadBalancer: {ingress: [{ip: 192.0.2.3}]}}
`

// What several look at, each from its side, is told once.
func TestOneFactIsOneEvent(t *testing.T) {
	f := manifests(t, troubled)
	o := controller.Options{Source: f.Source, Writer: f, Announce: &announce.Options{ExternalIPs: true}, Routes: &route.Options{}}
	o.Assign.ExternalIPs = true
	h := start(t, o)
	eventually(t, "the problems of both compilers", func() bool {
		of := map[string]bool{}
		for _, p := range h.Problems() {
			of[p.Object.Name+" "+p.Reason] = true
		}
		return of["given-by-another ForeignAddress"] && of["without-endpoints NoEligibleNode"]
	})
	wanted := map[string]string{
		"asks-outside":       "AddressOutsidePools",
		"given-by-another":   "ForeignAddress",
		"lists-an-interface": "NodeAddress",
		// Two facts: it is to lose its address, and then has lost it for another one.
		"lost-its-pool": "AddressLeaving IPAllocated",
		// Its address is from elsewhere, and nobody can announce it.
		"without-endpoints": "IPAdopted NoEligibleNode",
	}
	told := func(name string) string {
		var reasons []string
		for _, e := range f.Events() {
			if e.About.Name == name {
				reasons = append(reasons, slices.Repeat([]string{e.Reason}, e.Count)...)
			}
		}
		slices.Sort(reasons)
		return strings.Join(reasons, " ")
	}
	eventually(t, "as many Events as facts", func() bool {
		for name, want := range wanted {
			if len(told(name)) < len(want) {
				return false
			}
		}
		return true
	})
	for name, want := range wanted {
		if have := told(name); have != want {
			t.Errorf("of %s is told: %s; want %s", name, have, want)
		}
	}
}

// One look tells what the leader does: who does not lead, and `status --local`, say a
// fact once, too.
func TestOneLookTellsAFactOnce(t *testing.T) {
	f := manifests(t, troubled)
	eventually(t, "all objects", func() bool { return f.Snapshot().Services.Len() == 5 })
	c, now := f.Snapshot(), time.Now()
	options := assign.Options{ExternalIPs: true}
	assigned := assign.Compile(c, nil, nil, now, options).Problems
	announced := announce.Compile(c, "", announce.ViewOf(c), now, announce.Options{ExternalIPs: true}).Problems
	reasons := func(problems []snapshot.Problem, name string) (of []string) {
		for _, p := range problems {
			if p.Object.Name == name {
				of = append(of, p.Reason)
			}
		}
		return of
	}
	told := controller.Told(c, assigned, announced)
	const twice = "lists-an-interface"
	if both := reasons(slices.Concat(assigned, announced), twice); len(both) != 2 {
		t.Errorf("of %s the compilers tell %q: nothing is said twice", twice, both)
	}
	if got := reasons(told, twice); !slices.Equal(got, []string{assign.ReasonNodeAddress}) {
		t.Errorf("of %s is told %q", twice, got)
	}
	if got := reasons(told, "without-endpoints"); !slices.Contains(got, "NoEligibleNode") {
		t.Errorf("of without-endpoints is told %q", got)
	}
}

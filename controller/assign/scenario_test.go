package assign_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
	"quayside.io/controller/assign"
	"quayside.io/test/scenario"
)

var update = flag.Bool("update", false, "write what scenarios give as what they expect")

// TestScenarios applies each plan and asks for the next one until nothing
// changes, then shows what everybody has. A setting "restart" forgets the
// last plan, as a new leader does; "publish" is the proxy's Service,
// "watch" the one namespace that the proxies serve, "selector" the labels of
// those; "adopt" are controllers whose classes are served, too; "external" has
// spec.externalIPs announced.
func TestScenarios(t *testing.T) {
	scenario.Run(t, "testdata", *update, func(t *testing.T) scenario.Play {
		var prev *assign.Plan
		return func(c *snapshot.Cluster, now time.Time, settings map[string]string) (*snapshot.Cluster, string) {
			var out strings.Builder
			if settings["restart"] != "" {
				prev = nil
			}
			ns, name, _ := strings.Cut(settings["publish"], "/")
			opts := assign.Options{DefaultLoadBalancer: settings["default"] != "false", PublishService: snapshot.Key{Namespace: ns, Name: name}, Classes: ingressclass.Rules{Namespace: settings["watch"], Adopt: strings.Fields(settings["adopt"])}, ExternalIPs: settings["external"] != ""}
			if text := settings["selector"]; text != "" {
				selector, err := labels.Parse(text)
				if err != nil {
					t.Fatal(err)
				}
				opts.Classes.Namespaces = selector
			}
			for round := 0; ; round++ {
				var known []snapshot.Problem
				if prev != nil {
					known = prev.Problems
				}
				prev = assign.Compile(c, prev, nil, now, opts)
				for _, p := range prev.Problems { // as the controller's reporter does
					if !slices.Contains(known, p) {
						fmt.Fprintf(&out, "event %v\n", p)
					}
				}
				for _, u := range prev.Updates {
					if e, ok := u.Event(); ok {
						fmt.Fprintf(&out, "event %v: %s: %s\n", e.About, e.Reason, e.Message)
					}
				}
				if c = apply(c, prev); len(prev.Updates) == 0 {
					break
				}
				if round == 4 {
					t.Fatal("five plans, each applied, are no fixed point")
				}
			}
			checkHoldings(t, c, prev)
			describe(&out, c)
			for _, p := range prev.Problems {
				fmt.Fprintf(&out, "problem %v\n", p)
			}
			if !prev.NextWake.IsZero() {
				fmt.Fprintf(&out, "wake in %v\n", prev.NextWake.Sub(now))
			}
			return c, out.String()
		}
	})
}

// checkHoldings reports addresses in the status of a Service that a settled plan does not
// count as held by it.
func checkHoldings(t *testing.T, c *snapshot.Cluster, plan *assign.Plan) {
	t.Helper()
	for _, svc := range c.Services.Sorted() {
		for _, a := range statusOf(svc) {
			if !slices.ContainsFunc(plan.Holdings, func(h assign.Holding) bool {
				return h.Service == snapshot.KeyOf(svc) && h.Address == a.Unmap() && !h.Pending
			}) {
				t.Errorf("%s has %v, and does not hold it", snapshot.KeyOf(svc), a)
			}
		}
	}
}

// describe says what everybody has.
func describe(out *strings.Builder, c *snapshot.Cluster) {
	for _, svc := range c.Services.Sorted() {
		var ips []string
		for _, in := range svc.Status.LoadBalancer.Ingress {
			ips = append(ips, in.IP+in.Hostname)
			if in.IPMode != nil && *in.IPMode != corev1.LoadBalancerIPModeVIP {
				ips = append(ips, "mode "+string(*in.IPMode))
			}
		}
		fmt.Fprintf(out, "service %s: [%s] from %q%s\n", snapshot.KeyOf(svc), strings.Join(ips, " "),
			svc.Annotations[loadbalancer.AnnotationGiven], told(svc.Status.Conditions))
	}
	for _, in := range c.Ingresses.Sorted() {
		fmt.Fprintf(out, "ingress %s: %s\n", snapshot.KeyOf(in), reached(in))
	}
	for _, p := range c.IPAddressPools.Sorted() {
		s := p.Status
		fmt.Fprintf(out, "pool %s: IPv4 %d assigned %d available, IPv6 %d assigned %d available%s\n", p.Name,
			s.AssignedIPv4, s.AvailableIPv4, s.AssignedIPv6, s.AvailableIPv6, told(s.Conditions))
		for _, r := range s.Resting {
			fmt.Fprintf(out, "pool %s: %s rests since %s\n", p.Name, r.Addresses, r.Since.UTC().Format(time.TimeOnly))
		}
	}
}

func reached(in *networkingv1.Ingress) []string {
	list := []string{}
	for _, e := range in.Status.LoadBalancer.Ingress {
		list = append(list, e.IP+e.Hostname)
	}
	return list
}

// told shows conditions other than the good ones of pools.
func told(conditions []metav1.Condition) string {
	var s string
	for _, c := range conditions {
		if c.Status == metav1.ConditionFalse {
			s += fmt.Sprintf("; not %s: %s: %s", c.Type, c.Reason, c.Message)
		} else if c.Type == loadbalancer.ConditionSharing {
			s += "; shared " + c.Message
		} else if c.Reason == assign.ReasonAssigned {
			s += fmt.Sprintf("; %s %s", c.Reason, c.Message)
		}
	}
	return s
}

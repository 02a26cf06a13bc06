package explain

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"quayside.io/cluster/loadbalancer"
)

// WriteWide is WriteText with more columns, as `kubectl get -o wide` has them, and with
// every name of what WriteText shortens. Ages are those at now; zero: they are left out.
func (r *Report) WriteWide(w io.Writer, now time.Time) error { return r.write(w, &wide{now}) }

// wide is how a wide screen is written; nil: the usual one is.
type wide struct{ now time.Time }

// most is how many names a cell has.
func (w *wide) most(usual int) int {
	if w != nil {
		return math.MaxInt
	}
	return usual
}

// heading is that of a table, with more columns where the screen is wide.
func (w *wide) heading(usual, wider string) string {
	if w != nil {
		return wider
	}
	return usual
}

// add puts cells into the first of the lines before column i, where the screen is wide.
func (w *wide) add(lines [][]string, i int, cells ...string) [][]string {
	if w == nil {
		return lines
	}
	for at := range lines {
		more := cells
		if at > 0 {
			more = make([]string, len(cells))
		}
		lines[at] = slices.Insert(lines[at], min(i, len(lines[at])), more...)
	}
	return lines
}

// age is how long ago something was made.
func (w *wide) age(created time.Time) string {
	if w == nil || w.now.IsZero() || created.IsZero() {
		return ""
	}
	return duration.HumanDuration(w.now.Sub(created))
}

// ports are those of a Service as kubectl shows them.
func ports(s *corev1.Service) (list []string) {
	for _, p := range s.Spec.Ports {
		text := fmt.Sprint(p.Port)
		if p.NodePort != 0 {
			text += fmt.Sprintf(":%d", p.NodePort)
		}
		list = append(list, text+"/"+string(protocolOf(p)))
	}
	return list
}

// classOf is the class of a Service; empty: it has none.
func classOf(s *corev1.Service) string {
	if s.Spec.LoadBalancerClass == nil {
		return ""
	}
	return *s.Spec.LoadBalancerClass
}

// internal are the addresses of a node that others of the cluster reach it at.
func internal(n *corev1.Node) (list []string) {
	for a := range loadbalancer.NodeAddresses(n, corev1.NodeInternalIP) {
		list = append(list, a.String())
	}
	return list
}

// portsOf are those that an Ingress is served at, as kubectl shows them.
func portsOf(i Ingress) string {
	if i.TLS {
		return "80, 443"
	}
	return "80"
}

// joined is a list that is not shortened.
func joined(of []string) string { return strings.Join(of, ",") }

package explain

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
	"quayside.io/controller/assign"
	"quayside.io/speaker/announce"
)

// Report is one screen about the whole edge.
type Report struct {
	Services  []Service `json:"services"`
	Ingresses []Ingress `json:"ingresses"`
	// Hosts are those that more than one namespace serves.
	Hosts    []SharedHost `json:"sharedHosts,omitempty"`
	Pools    []Pool       `json:"pools"`
	Nodes    []Node       `json:"nodes"`
	Peers    []Peer       `json:"bgpPeers,omitempty"`
	Problems []Problem    `json:"problems"`
	// Following says that a controller made this that does not lead. Writes that were
	// refused, and what could not be granted, the leader alone knows.
	Following bool `json:"following,omitempty"`

	moreServices, moreIngresses int // than there are rows of, in a Screen
}

// Service is a Service of type LoadBalancer, or one of another type whose
// spec.externalIPs are announced, or that a route leads to and nobody serves.
type Service struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Class     string    `json:"class,omitempty"`
	Ports     []string  `json:"ports,omitempty"` // "80:30080/TCP"
	Created   time.Time `json:"created,omitzero"`
	Pool      string    `json:"pool,omitempty"`
	Addresses []Address `json:"addresses,omitempty"`
	// Waiting says why there is no address, or not all that were asked for.
	Waiting string `json:"waiting,omitempty"`
	// NotServed says why its traffic ends nowhere: it has no endpoint.
	NotServed string `json:"notServed,omitempty"`
}

// Address is one external address and the nodes that answer for it.
type Address struct {
	IP        string   `json:"ip"`
	Announced []string `json:"announced,omitempty"` // "n2 (l2)"
}

// Ingress is one Ingress of any class that has one.
type Ingress struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Class     string    `json:"class,omitempty"`
	TLS       bool      `json:"tls,omitempty"` // for some host
	Created   time.Time `json:"created,omitzero"`
	Rules     []string  `json:"rules,omitempty"` // "foo.com/video -> video:80"
	Addresses []string  `json:"addresses,omitempty"`
	// NotServed says why the proxies leave it out; empty also where others serve it.
	NotServed string `json:"notServed,omitempty"`
}

// Pool is an IPAddressPool with its counters.
type Pool struct {
	Name      string    `json:"name"`
	Ranges    []string  `json:"ranges"`
	Assigned  int64     `json:"assigned"`
	Available int64     `json:"available"`
	Created   time.Time `json:"created,omitzero"`
}

// Node is a node of the cluster and what its speaker says.
type Node struct {
	Name       string    `json:"name"`
	Ready      bool      `json:"ready"`
	Speaker    bool      `json:"speaker"` // a SpeakerStatus exists
	Announcing int64     `json:"announcing"`
	Unlisted   int64     `json:"unlisted,omitempty"` // of these, what a SpeakerStatus has no room for
	Alive      int32     `json:"membersAlive,omitempty"`
	NotAlive   []string  `json:"membersNotAlive,omitempty"`
	Leaving    bool      `json:"leaving,omitempty"`
	Addresses  []string  `json:"addresses,omitempty"` // in the cluster's own network
	Created    time.Time `json:"created,omitzero"`
}

// Problem is a snapshot.Problem in the shape that /state shows.
type Problem struct {
	Object  string `json:"object"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Status reports on inputs; their Routes may be nil. The source's own faults are
// added to the problems.
func Status(inputs Inputs) *Report { return report(inputs, math.MaxInt) }

// Screen is Status for WriteText alone: of the Services and the Ingresses, which may be
// very many, it has those that are shown.
func Screen(inputs Inputs) *Report { return report(inputs, maxRows) }

// report reports with no more than the first rows of what may be many.
func report(inputs Inputs, rows int) *Report {
	c := inputs.Cluster
	live := living(c, announce.Missed(c))
	announced := announcers(inputs, live)
	r := &Report{Problems: publicProblems(statusProblems(inputs, live)), Following: inputs.Following}
	unserved := unserved(inputs)
	services, n := c.Services.First(rows, func(s *corev1.Service) bool {
		return s.Spec.Type == corev1.ServiceTypeLoadBalancer || len(addresses(s, announced)) > 0 || unserved(s) != ""
	})
	r.moreServices = n - len(services)
	for _, s := range services {
		out := Service{
			Namespace: s.Namespace, Name: s.Name, Class: classOf(s), Ports: ports(s), Created: s.CreationTimestamp.Time, Pool: s.Annotations[loadbalancer.AnnotationGiven], Addresses: addresses(s, announced),
			Waiting: waiting(s, inputs.Assign), NotServed: unserved(s),
		}
		r.Services = append(r.Services, out)
	}
	ingresses, n := c.Ingresses.First(rows, func(*networkingv1.Ingress) bool { return true })
	r.moreIngresses = n - len(ingresses)
	why := whyNotServed(inputs)
	for _, i := range ingresses {
		out := ingress(i)
		out.NotServed = why(i)
		r.Ingresses = append(r.Ingresses, out)
	}
	r.Hosts = sharedHosts(inputs)
	for _, p := range c.IPAddressPools.Sorted() {
		r.Pools = append(r.Pools, Pool{
			Name: p.Name, Ranges: p.Spec.Addresses, Created: p.CreationTimestamp.Time,
			Assigned:  p.Status.AssignedIPv4 + p.Status.AssignedIPv6,
			Available: saturatingSum(p.Status.AvailableIPv4, p.Status.AvailableIPv6),
		})
	}
	for _, n := range c.Nodes.Sorted() {
		r.Nodes = append(r.Nodes, node(c, n))
	}
	r.Peers = peers(c)
	return r
}

// publicProblems turns problems into their public shape, in order and without
// repetitions.
func publicProblems(problems []snapshot.Problem) []Problem {
	sorted := snapshot.Distinct(problems)
	out := make([]Problem, len(sorted))
	for i, p := range sorted {
		out[i] = Problem{p.Object.String(), p.Reason, p.Message}
	}
	return out
}

// living are the statuses of the speakers that live, in the order of names. Who is missed
// says package announce.
func living(c *snapshot.Cluster, missed map[string]struct{}) []*v1alpha1.SpeakerStatus {
	return slices.DeleteFunc(slices.Clone(c.SpeakerStatuses.Sorted()), func(s *v1alpha1.SpeakerStatus) bool {
		_, dead := missed[s.Name]
		return dead || isOrphan(c, s)
	})
}

// announcers maps "service address" to the nodes that say they answer for it, of those
// that live.
func announcers(inputs Inputs, live []*v1alpha1.SpeakerStatus) map[string][]string {
	by := map[string][]string{}
	for _, s := range live {
		for _, a := range s.Status.Announcing {
			k := a.Service + " " + a.Address
			by[k] = append(by[k], fmt.Sprintf("%s (%s)", s.Name, a.Protocol))
		}
	}
	addRouted(inputs, by)
	return by
}

// isOrphan reports whether the node of a speaker was deleted: what the speaker
// said last stands until its status is deleted, too, and nobody is left to
// correct it. Who may not list nodes sees none at all.
func isOrphan(c *snapshot.Cluster, s *v1alpha1.SpeakerStatus) bool {
	_, known := c.Nodes.Get(snapshot.Key{Name: s.Name})
	return !known && c.Nodes.Len() > 0
}

// waiting says why a Service of type LoadBalancer has no address, or not all.
func waiting(s *corev1.Service, o assign.Options) string {
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return ""
	}
	none := len(s.Status.LoadBalancer.Ingress) == 0
	if why := foreign(s, o); none && why != "" {
		return why
	}
	switch c := meta.FindStatusCondition(s.Status.Conditions, assign.ConditionAddress); {
	case c != nil && c.Status != "True":
		return c.Reason + ": " + c.Message
	case c == nil && none:
		return "no controller has looked at it yet: does one run, and lead?"
	}
	return ""
}

// foreign says why a Service of type LoadBalancer is left to others; empty: it is not,
// or was not always.
func foreign(s *corev1.Service, o assign.Options) string {
	if s.Annotations[loadbalancer.AnnotationGiven] != "" {
		return ""
	}
	ours := cmp.Or(o.LoadBalancerClass, loadbalancer.Class)
	switch class := s.Spec.LoadBalancerClass; {
	case class != nil && *class != ours && o.DefaultLoadBalancer:
		return fmt.Sprintf("its loadBalancerClass %s is another controller's; for Quayside make the Service anew with %s, or without a class", *class, ours)
	case class != nil && *class != ours:
		return fmt.Sprintf("its loadBalancerClass %s is another controller's; for Quayside make the Service anew with %s", *class, ours)
	case class == nil && !o.DefaultLoadBalancer:
		return fmt.Sprintf("it has no loadBalancerClass, and Quayside runs with --default-load-balancer=false; make the Service anew with %s", ours)
	}
	return ""
}

// addresses are those that a Service was given and those that it lists and somebody
// announces.
func addresses(s *corev1.Service, announced map[string][]string) (list []Address) {
	for _, in := range s.Status.LoadBalancer.Ingress {
		ip := cmp.Or(in.IP, in.Hostname)
		list = append(list, Address{ip, announced[s.Namespace+"/"+s.Name+" "+ip]})
	}
	for _, ip := range loadbalancer.ParseAddresses(s.Spec.ExternalIPs) {
		if by := announced[s.Namespace+"/"+s.Name+" "+ip.String()]; len(by) > 0 {
			list = append(list, Address{ip.String(), by})
		}
	}
	return list
}

func ingress(i *networkingv1.Ingress) Ingress {
	out := Ingress{Namespace: i.Namespace, Name: i.Name, Class: ingressclass.NameOf(i), TLS: len(i.Spec.TLS) > 0, Created: i.CreationTimestamp.Time}
	if b := i.Spec.DefaultBackend; b != nil {
		out.Rules = append(out.Rules, "default -> "+backend(b))
	}
	for _, rule := range i.Spec.Rules {
		if rule.HTTP == nil {
			continue
		}
		for _, p := range rule.HTTP.Paths {
			out.Rules = append(out.Rules, cmp.Or(rule.Host, "*")+cmp.Or(p.Path, "/")+" -> "+backend(&p.Backend))
		}
	}
	for _, in := range i.Status.LoadBalancer.Ingress {
		out.Addresses = append(out.Addresses, cmp.Or(in.IP, in.Hostname))
	}
	return out
}

// whyNotServed returns what says why an Ingress is left out, because of its namespace or
// its class, where the inputs have routes. One with an address is served by others.
func whyNotServed(s Inputs) func(*networkingv1.Ingress) string {
	if s.Routes == nil {
		return func(*networkingv1.Ingress) string { return "" }
	}
	classes := s.Routes.Classes()
	blind := isUnreadKind(s.Cluster, snapshot.IngressClass) || classes.ByLabels() && isUnreadKind(s.Cluster, snapshot.Namespace)
	return func(i *networkingv1.Ingress) string {
		_, ours := classes.Of(i)
		class := ingress(i).Class
		switch {
		case blind || ours:
			return ""
		case classes.Elsewhere(i):
			return classes.Why(i.Namespace)
		case len(i.Status.LoadBalancer.Ingress) > 0:
			return ""
		case class == "":
			return "it names no class, and none of ours is the default"
		}
		return "class " + class + " is none of ours"
	}
}

func backend(b *networkingv1.IngressBackend) string {
	switch {
	case b.Service == nil:
		return "(resource)"
	case b.Service.Port.Name != "":
		return b.Service.Name + ":" + b.Service.Port.Name
	default:
		return fmt.Sprintf("%s:%d", b.Service.Name, b.Service.Port.Number)
	}
}

func node(c *snapshot.Cluster, n *corev1.Node) Node {
	out := Node{Name: n.Name, Addresses: internal(n), Created: n.CreationTimestamp.Time}
	for _, cond := range n.Status.Conditions {
		out.Ready = out.Ready || cond.Type == corev1.NodeReady && cond.Status == corev1.ConditionTrue
	}
	if s, ok := c.SpeakerStatuses.Get(snapshot.Key{Name: n.Name}); ok {
		out.Speaker = true
		listed := int64(len(s.Status.Announcing))
		out.Announcing = max(s.Status.AnnouncingCount, listed)
		out.Unlisted = out.Announcing - listed
		out.NotAlive = s.Status.Members.NotAlive
		if s.Status.Members.Expected > 0 { // it counts the members, which few do for all
			out.Alive = s.Status.Members.Alive
		}
		out.Leaving = s.Status.Leaving
	}
	return out
}

// saturatingSum adds two counts that are never negative.
func saturatingSum(a, b int64) int64 {
	if sum := a + b; sum >= 0 {
		return sum
	}
	return 1<<63 - 1
}

// names joins a list for a cell of the screen, shortening a long one.
func names(list []string, most int) string {
	if len(list) > most {
		return fmt.Sprintf("%s, … %d more", strings.Join(list[:most], ", "), len(list)-most)
	}
	return strings.Join(list, ", ")
}

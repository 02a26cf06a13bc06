package explain

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/controller/assign"
	"quayside.io/proxy/route"
	"quayside.io/speaker/announce"
)

// Inputs are what a report and a trace are computed from.
type Inputs struct {
	Cluster *snapshot.Cluster
	// Problems are those of all compilers.
	Problems []snapshot.Problem
	// Assign are the switches of the controller: which Services are ours.
	Assign assign.Options
	// Announce are the switches of the speakers.
	Announce announce.Options
	// Routes is the table of the proxies.
	Routes *route.Table
	// Embedded is `quayside up`: there are no speakers, and loopback addresses
	// are reached on this machine.
	Embedded bool
	// Node is what `up` takes this machine for, and PortOf where it listens for the port
	// of a Service; nil: at that port.
	Node   string
	PortOf func(int32) uint16
	// Self are the proxy's own Services. `up` serves its one itself, without an
	// EndpointSlice.
	Self []snapshot.Key
	// ByFlags says that the switches were given by hand, and may not be those of the
	// installation.
	ByFlags bool
	// Following says that Problems are not the leader's, who alone knows some.
	Following bool
	// Now judges certificates.
	Now time.Time
}

// State says whether a link holds.
type State string

// The states of a link.
const (
	Works   State = "ok"
	Broken  State = "broken"
	Unknown State = "unknown" // it could not be looked at from here
)

// Link is one step on the way from the LAN to a pod.
type Link struct {
	Name  string `json:"name"` // "service", "address", "announced", "endpoints", "proxy", "certificate", "route", "guards", "refused", "redirect", "backend", "policies"; see also package live
	State State  `json:"state"`
	Says  string `json:"says"`
}

// Path is how a target is reached, link by link, and what else is known to be
// wrong with the objects on the way.
type Path struct {
	Target   string    `json:"target"`
	Links    []Link    `json:"links"`
	Problems []Problem `json:"problems,omitempty"`
	// Ends are where it begins for a client: what to connect to, over TCP.
	Ends []netip.AddrPort `json:"ends,omitempty"`
	// Hops are the Services whose pods get connections, as far as that is known.
	Hops []Hop `json:"hops,omitempty"`
	// Backend is the Service whose pods answer a request, if it is known.
	Backend string `json:"backend,omitempty"`
}

// FirstBroken is the first link that does not hold; false: none is known not to.
func (p *Path) FirstBroken() (Link, bool) {
	i := slices.IndexFunc(p.Links, func(l Link) bool { return l.State == Broken })
	if i < 0 {
		return Link{}, false
	}
	return p.Links[i], true
}

// Trace explains the path to a target.
func Trace(s Inputs, target Target) *Path {
	t := &tracer{Inputs: s, path: &Path{Target: target.text}, seen: map[snapshot.Ref]struct{}{}}
	switch {
	case target.address.IsValid():
		t.address(target.address, target.port)
	case target.service.Name != "":
		t.service(target.service)
	default:
		t.http(target.tls, target.host, target.path)
	}
	t.collectProblems()
	return t.path
}

// tracer walks one path.
type tracer struct {
	Inputs
	path *Path
	seen map[snapshot.Ref]struct{} // the objects on the way

	known  *routers            // nil: nobody has asked
	missed map[string]struct{} // announce.Missed; nil: nobody has asked
}

// routers are compiled when the first address is met.
func (t *tracer) routers() *routers {
	if t.known == nil {
		t.known = routersOf(t.Cluster, t.Now, t.Announce)
	}
	return t.known
}

// isMissed reports whether the speaker of a node is not alive by what the others say.
func (t *tracer) isMissed(node string) bool {
	_, missed := t.missedNodes()[node]
	return missed
}

func (t *tracer) missedNodes() map[string]struct{} {
	if t.missed == nil {
		t.missed = announce.Missed(t.Cluster)
	}
	return t.missed
}

func (t *tracer) works(name, format string, args ...any)   { t.link(name, Works, format, args...) }
func (t *tracer) broken(name, format string, args ...any)  { t.link(name, Broken, format, args...) }
func (t *tracer) unknown(name, format string, args ...any) { t.link(name, Unknown, format, args...) }

func (t *tracer) link(name string, state State, format string, args ...any) {
	t.path.Links = append(t.path.Links, Link{name, state, fmt.Sprintf(format, args...)})
}

// end notes that a client connects to a port of ip.
func (t *tracer) end(ip netip.Addr, port uint16) {
	if at := netip.AddrPortFrom(ip, port); !slices.Contains(t.path.Ends, at) {
		t.path.Ends = append(t.path.Ends, at)
	}
}

// endsOf notes the ports of a Service at ip; those alone that only names, if it names any.
func (t *tracer) endsOf(s *corev1.Service, ip netip.Addr, only func(corev1.ServicePort) bool) {
	for _, port := range s.Spec.Ports {
		switch {
		case only != nil && !only(port), protocolOf(port) != corev1.ProtocolTCP:
		case t.PortOf != nil:
			t.end(ip, t.PortOf(port.Port))
		default:
			t.end(ip, uint16(port.Port))
		}
	}
}

// see notes an object whose Problems concern this path.
func (t *tracer) see(kind snapshot.Kind, key snapshot.Key) {
	t.seen[snapshot.Ref{Kind: kind.String(), Key: key}] = struct{}{}
}

// problem returns the message of a Problem with an object, for the first of
// reasons that there is. Where about is an address, the message must name it.
func (t *tracer) problem(kind snapshot.Kind, key snapshot.Key, about netip.Addr, reasons ...string) (message string, ok bool) {
	ref := snapshot.Ref{Kind: kind.String(), Key: key}
	for _, reason := range reasons {
		for _, p := range t.Inputs.Problems {
			if p.Object == ref && p.Reason == reason && (!about.IsValid() || mentions(p.Message, about)) {
				return p.Message, true
			}
		}
	}
	return "", false
}

// mentions reports whether ip is a word of a message: 10.0.0.1 is none of one
// about 10.0.0.10 or 10.0.0.1/28.
func mentions(message string, ip netip.Addr) bool {
	for word := range strings.FieldsSeq(message) {
		if after, ok := strings.CutPrefix(word, ip.String()); ok && slices.Contains([]string{"", ",", ";", ":"}, after) {
			return true
		}
	}
	return false
}

// collectProblems adds what is wrong with the objects on the way.
func (t *tracer) collectProblems() {
	var list []snapshot.Problem
	for _, p := range t.Inputs.Problems {
		if _, on := t.seen[p.Object]; on {
			list = append(list, p)
		}
	}
	if len(list) > 0 {
		t.path.Problems = publicProblems(list)
	}
}

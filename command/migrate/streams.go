package migrate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"quayside.io/cluster/loadbalancer"
)

// A stream is a line of the ConfigMaps by which ingress-nginx serves TCP and UDP: a
// port of its own that leads to one of a Service.
type stream struct {
	from     string // the ConfigMap
	edge     string // the namespace of it: what is in one was at one address
	line     string // as it was written
	protocol corev1.Protocol
	port     int32
	to       target
	at       intstr.IntOrString // number or name of the Service's port
	// By the PROXY protocol nginx learns of clients, and tells pods of them.
	learns, tells bool
}

// target is a Service to which streams lead.
type target struct{ namespace, name string }

func (t target) String() string { return t.namespace + "/" + t.name }

// streamsOf returns the lines of a ConfigMap that is one of those, by its name and by
// all of its keys, and notes about lines that ingress-nginx passes by, or should. Of
// any other it returns none.
func streamsOf(s *source) (list []stream, notes []string) {
	protocol, ok := streamProtocol(s.Metadata.Name)
	var data map[string]string
	if !ok || json.Unmarshal(s.Data, &data) != nil {
		return nil, nil
	}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		port, err := parsePort(key)
		if err != nil {
			return nil, nil
		}
		one, err := parseStream(data[key], protocol)
		if err != nil {
			notes = append(notes, fmt.Sprintf("%s: %s: %q: %v: left out", s, key, data[key], err))
			continue
		}
		one.from, one.edge, one.port, one.line = s.String(), s.Metadata.Namespace, port, key+": "+data[key]
		list = append(list, one)
	}
	if len(list) == 0 {
		return nil, nil
	}
	return list, notes
}

// streamProtocol is that of a ConfigMap as the documentation or the chart of
// ingress-nginx names it.
func streamProtocol(name string) (corev1.Protocol, bool) {
	switch {
	case name == "tcp-services" || strings.HasSuffix(name, "-tcp"):
		return corev1.ProtocolTCP, true
	case name == "udp-services" || strings.HasSuffix(name, "-udp"):
		return corev1.ProtocolUDP, true
	}
	return "", false
}

func parsePort(text string) (int32, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("port %q: want 1 to 65535", text)
	}
	return int32(n), nil
}

// parseStream reads NAMESPACE/SERVICE:PORT[:[PROXY][:[PROXY]]].
func parseStream(text string, protocol corev1.Protocol) (s stream, err error) {
	parts := strings.Split(text, ":")
	if len(parts) < 2 || len(parts) > 4 {
		return s, errors.New("want NAMESPACE/SERVICE:PORT[:PROXY][:PROXY]")
	}
	namespace, name, _ := strings.Cut(parts[0], "/")
	if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Label(name)) > 0 {
		return s, errors.New("want NAMESPACE/SERVICE before the port")
	}
	s.protocol, s.to, s.at = protocol, target{namespace, name}, intstr.Parse(parts[1])
	if s.at.Type == intstr.String && len(validation.IsValidPortName(s.at.StrVal)) > 0 ||
		s.at.Type == intstr.Int && len(validation.IsValidPortNum(int(s.at.IntVal))) > 0 {
		return s, fmt.Errorf("%q is neither number nor name of a port", parts[1])
	}
	for i, part := range parts[2:] {
		if part != "" && !strings.EqualFold(part, "PROXY") {
			return s, fmt.Errorf("%q is not PROXY", part)
		}
		s.learns, s.tells = s.learns || i == 0 && part != "", s.tells || i == 1 && part != ""
	}
	return s, nil
}

// stream takes the lines of a ConfigMap until all Services are known.
func (m *Migration) stream(list []stream, notes []string) {
	m.streams = append(m.streams, list...)
	m.result.Notes = append(m.result.Notes, notes...)
}

// service remembers a Service, which stays as it is: streams may lead to it, and others share its
// addresses.
func (m *Migration) service(s *source) error {
	svc := &corev1.Service{}
	svc.Namespace, svc.Name, svc.Annotations = cmp.Or(s.Metadata.Namespace, corev1.NamespaceDefault), s.Metadata.Name, s.Metadata.Annotations
	if len(s.Spec) > 0 {
		if err := json.Unmarshal(s.Spec, &svc.Spec); err != nil {
			return fmt.Errorf("spec: %w", err)
		}
	}
	if len(s.Status) > 0 {
		if err := json.Unmarshal(s.Status, &svc.Status); err != nil {
			return fmt.Errorf("status: %w", err)
		}
	}
	if m.Only != Addresses {
		if m.services == nil {
			m.services = map[target]corev1.ServiceSpec{}
		}
		m.services[target{svc.Namespace, svc.Name}] = svc.Spec
		m.noteEdge(s, svc.Spec.Selector)
	}
	if m.Only != Ingresses {
		m.noteSharer(svc)
	}
	m.pass(s)
	return nil
}

// ownAddress is said where streams became Services.
const ownAddress = "Services of type LoadBalancer take the place of tcp-services and udp-services: their ports are at an address of their own and no longer at that of the " +
	"proxy; docs/from-ingress-nginx.md says how to have one for both. Connections to them pass no proxy, so timeouts and limits of nginx are gone"

// balanced returns the Services of type LoadBalancer that do what the streams did:
// beside each Service one, with all of its ports.
func (m *Migration) balanced() (objects []Object, notes []string) {
	type place struct {
		edge string
		to   target
	}
	byPlace := map[place][]stream{}
	for _, s := range m.streams {
		p := place{s.edge, s.to}
		byPlace[p] = append(byPlace[p], s)
	}
	byEdge, taken := map[string][]*Object{}, map[string]bool{}
	order := func(a, b place) int {
		return cmp.Or(strings.Compare(a.edge, b.edge), strings.Compare(a.to.String(), b.to.String()))
	}
	for _, p := range slices.SortedFunc(maps.Keys(byPlace), order) {
		o, said := m.balance(p.to, byPlace[p])
		notes = append(notes, said...)
		if o == nil {
			continue
		}
		if taken[o.String()] {
			notes = append(notes, fmt.Sprintf("%s is left out for namespace %s: there is one already, for another ingress-nginx", o, p.edge))
			continue
		}
		taken[o.String()] = true
		byEdge[p.edge] = append(byEdge[p.edge], o)
	}
	for edge, list := range byEdge {
		shareOne(edge, list)
		for _, o := range list {
			objects = append(objects, *o)
		}
	}
	if len(objects) > 0 {
		notes = append(notes, ownAddress)
	}
	return objects, notes
}

// balance returns the Service that does what streams to one Service did, or nil, and
// says what it cannot do.
func (m *Migration) balance(to target, list []stream) (o *Object, notes []string) {
	spec, known := m.services[to]
	name := to.name + "-lb"
	_, there := m.services[target{to.namespace, name}]
	why := ""
	switch {
	case !known:
		why = fmt.Sprintf("is not among the input, which alone says which pods these are: give it too, as from kubectl get service -n %s %s -o yaml", to.namespace, to.name)
	case spec.Type == corev1.ServiceTypeExternalName:
		why = "is of type ExternalName: no address leads out of the cluster; a Deployment of a TCP proxy could"
	case len(spec.Selector) == 0:
		why = "has no selector: make a Service of type LoadBalancer without one, and EndpointSlices for it, as somebody does for this one"
	case there:
		why = fmt.Sprintf("has a neighbour %s already, which would be overwritten: add the port to that by hand", name)
	case len(name) > validation.DNS1123LabelMaxLength:
		why = fmt.Sprintf("has a name so long that %s is none", name)
	}
	if why != "" {
		for _, s := range list {
			notes = append(notes, fmt.Sprintf("%s: %s: Service %s %s", s.from, s.line, to, why))
		}
		return nil, notes
	}
	class := loadbalancer.Class
	balanced := &corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: &class, Selector: spec.Selector}
	o = &Object{APIVersion: "v1", Kind: "Service", Metadata: Meta{Namespace: to.namespace, Name: name}, Spec: balanced}
	slices.SortStableFunc(list, func(a, b stream) int {
		return cmp.Or(cmp.Compare(a.port, b.port), strings.Compare(string(a.protocol), string(b.protocol)))
	})
	for _, s := range list {
		port, err := s.servicePort(spec)
		if err == nil && slices.ContainsFunc(balanced.Ports, func(p corev1.ServicePort) bool { return p.Name == port.Name }) {
			err = errors.New("there is one of this port already")
		}
		if err != nil {
			notes = append(notes, fmt.Sprintf("%s: %s: left out: %v", s.from, s.line, err))
			continue
		}
		balanced.Ports = append(balanced.Ports, port)
		o.Notes = append(o.Notes, fmt.Sprintf("for %s of %s", s.line, s.from))
		if said := s.proxyProtocol(); said != "" {
			o.Notes = append(o.Notes, said)
		}
	}
	if len(balanced.Ports) == 0 {
		return nil, notes
	}
	return o, notes
}

// servicePort is that of the stream, which leads where the one of its Service does.
func (s stream) servicePort(spec corev1.ServiceSpec) (corev1.ServicePort, error) {
	for _, p := range spec.Ports {
		if cmp.Or(p.Protocol, corev1.ProtocolTCP) != s.protocol || s.at != intstr.FromInt32(p.Port) && s.at != intstr.FromString(p.Name) {
			continue
		}
		if p.TargetPort == (intstr.IntOrString{}) {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
		return corev1.ServicePort{
			Name: fmt.Sprintf("%s-%d", strings.ToLower(string(s.protocol)), s.port), Port: s.port, Protocol: s.protocol, TargetPort: p.TargetPort,
		}, nil
	}
	return corev1.ServicePort{}, fmt.Errorf("there is no port %s/%s in Service %s", s.at.String(), s.protocol, s.to)
}

// proxyProtocol says what becomes of it, since nobody here reads or writes it on the
// way to a Service.
func (s stream) proxyProtocol() string {
	const without = "the pods see the client's own address with externalTrafficPolicy: Local, which takes an address that nobody shares"
	switch {
	case !s.learns && !s.tells:
		return ""
	case s.protocol == corev1.ProtocolUDP:
		return fmt.Sprintf("port %d: PROXY means nothing for UDP, there as here", s.port)
	case s.learns && s.tells:
		return fmt.Sprintf("port %d: the PROXY header that is sent to it reaches the pods as it is", s.port)
	case s.learns:
		return fmt.Sprintf("port %d: nginx took off the PROXY header that is sent to it, and here it reaches the pods: let them expect it, or the sender leave it out; without it %s", s.port, without)
	}
	return fmt.Sprintf("port %d: nginx sent the pods a PROXY header, and here nobody does: let them no longer expect it; %s", s.port, without)
}

// shareOne lets the Services of one edge have one address, as they had; one alone has
// it for itself.
func shareOne(edge string, list []*Object) {
	if len(list) < 2 {
		return
	}
	spaces := map[string]bool{}
	for _, o := range list {
		spaces[o.Metadata.Namespace] = true
	}
	for _, o := range list {
		o.Metadata.Annotations = map[string]string{loadbalancer.AnnotationSharingKey: cmp.Or(edge, corev1.NamespaceDefault)}
		others := slices.DeleteFunc(slices.Sorted(maps.Keys(spaces)), func(n string) bool { return n == o.Metadata.Namespace })
		if len(others) > 0 {
			o.Metadata.Annotations[loadbalancer.AnnotationSharingNamespaces] = strings.Join(others, ",")
		}
	}
}

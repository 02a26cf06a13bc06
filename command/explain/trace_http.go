package explain

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/balance"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/route"
)

// http traces a URL: to a proxy, through its table, to a pod. path is normalised.
func (t *tracer) http(tls bool, host string, path []byte) {
	name, port := cutPort(host, tls)
	if ip, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil && t.isOfOthers(ip.Unmap()) {
		t.address(ip.Unmap(), tcp(port))
		return
	}
	var passed *route.Passthrough
	if tls {
		passed = t.Routes.Passthrough(name)
	}
	if passed != nil {
		path = []byte("/") // nobody reads another
	}
	r, guard := t.Routes.Match(&exchange.Request{Method: []byte("GET"), Host: []byte(host), Target: path, Path: path})
	if guard != nil && guard.Closed != "" {
		r = guard
	}
	if r == nil || r.LeftOver() {
		t.noRule(r, name, path)
		return
	}
	nodes := t.front(r, port)
	if passed != nil {
		t.passthrough(passed, name, nodes)
		return
	}
	if tls {
		t.certificate(r, name)
	}
	t.leads(r, path)
	if r.Closed != "" {
		return
	}
	req := &exchange.Request{Method: []byte("GET"), Host: []byte(host), Target: path, Path: path, TLS: tls}
	if r = t.foreseen(r, req); r == nil {
		return
	}
	if !tls && r.RedirectsToTLS(req.Path) {
		t.works("redirect", "answers 308 to https; what follows holds for that")
	}
	if r.NoRule {
		t.noRule(r, name, req.Path)
		return
	}
	if f := r.Filters; f != nil && f.DirectResponse != nil {
		t.works("response", "Ingress %s answers every request that its guards let pass with %d; no backend is asked", r.Owner.Key, f.DirectResponse.Status)
		return
	}
	if r.Backend < 0 {
		t.nowhere(r)
		return
	}
	t.backend(r, nodes)
}

// nowhere tells of a route that is open and has no backend.
func (t *tracer) nowhere(r *route.Route) {
	if r.SendsAway() {
		t.works("redirect", "Ingress %s sends every request elsewhere; no backend is asked", r.Owner.Key)
		return
	}
	t.see(snapshot.Service, r.Service)
	if !t.unseen("backend", snapshot.Service, "Service "+r.Service.String()) {
		t.broken("backend", "503: Service %s does not exist, or has no port %s%s", r.Service, r.Port, t.replaced(r))
	}
}

// noRule tells of a request that no rule is for. r is what it comes to; nil: nothing.
func (t *tracer) noRule(r *route.Route, host string, path []byte) {
	if t.unseenRules(host) {
		return
	}
	why := t.noRoute(host, path)
	if r != nil && r.Backend >= 0 {
		why = fmt.Sprintf("%s; Service %s of --default-backend-service answers", strings.TrimPrefix(why, "404: "), r.Service)
	}
	t.broken("route", "%s", why)
}

// unseenRules tells of a host for which there may be a rule that nobody here sees.
func (t *tracer) unseenRules(host string) bool {
	return t.unseen("route", snapshot.Ingress, "host "+host) || t.unseen("route", snapshot.IngressClass, "host "+host) ||
		t.Routes.Classes().ByLabels() && t.unseen("route", snapshot.Namespace, "host "+host)
}

// passthrough looks at what becomes of a connection that is not decrypted.
func (t *tracer) passthrough(p *route.Passthrough, host string, nodes []string) {
	t.see(snapshot.Ingress, p.Owner.Key)
	if p.Closed != "" {
		t.broken("passthrough", "connections for %s are ended by Ingress %s: %s", host, p.Owner.Key, p.Closed)
		return
	}
	t.works("passthrough", "connections for %s are handed on undecrypted by Ingress %s; the certificate is the backend's", host, p.Owner.Key)
	t.backend(&route.Route{Backend: p.Backend}, nodes)
}

// isOfOthers reports whether Services hold ip and none of them is the proxy's: a
// request to it passes no proxy of ours.
func (t *tracer) isOfOthers(ip netip.Addr) bool {
	holders, listers := t.holders(ip)
	all := append(holders, listers...)
	if len(all) == 0 || slices.ContainsFunc(all, func(s *corev1.Service) bool { return slices.Contains(t.Self, snapshot.KeyOf(s)) }) {
		return false
	}
	for r := range t.Routes.Routes() {
		if i, ok := t.Cluster.Ingresses.Get(r.Owner.Key); ok && slices.Contains(ingress(i).Addresses, ip.String()) {
			return false
		}
	}
	return true
}

// cutPort parts "host:port"; without a port it is that of the scheme. A host
// may be an IPv6 address in brackets.
func cutPort(host string, tls bool) (name string, port int32) {
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		if n, err := strconv.ParseUint(host[i+1:], 10, 16); err == nil {
			return host[:i], int32(n)
		}
	}
	if tls {
		return host, 443
	}
	return host, 80
}

// noRoute says why a request would get a 404: of the rules that are for its host, the most
// specific tell.
func (t *tracer) noRoute(host string, path []byte) string {
	_, parent, _ := strings.Cut(host, ".")
	for _, named := range []string{host, "*." + parent, ""} {
		if why := t.otherPaths(named, path); why != "" {
			return why
		}
		if why := t.notServed(host, named); why != "" && named != "" {
			return why
		}
	}
	return fmt.Sprintf("404: no Ingress has a rule for host %s, and there is no default backend", host)
}

// otherPaths names the paths that are served of a host, as rules name it; "": none is.
func (t *tracer) otherPaths(named string, path []byte) string {
	var paths []string
	for r := range t.Routes.Routes() {
		if r.Host == named && !r.LeftOver() && !r.NoRule {
			paths = append(paths, r.Path)
		}
	}
	switch {
	case len(paths) == 0:
		return ""
	case named == "":
		return fmt.Sprintf("404: no Ingress has a rule for this host, and no path of those without a host matches %s; they have %s", path, names(paths, 5))
	}
	return fmt.Sprintf("404: no path of host %s matches %s; it has %s", named, path, names(paths, 5))
}

// notServed names the Ingresses with rules for a host that are left out, and says why;
// "": there are none. A rule may name the host by a wildcard.
func (t *tracer) notServed(host, named string) string {
	var foreign, pathless []string
	classes, byClass, gone := t.Routes.Classes(), false, false
	for _, i := range t.Cluster.Ingresses.Sorted() {
		if !slices.ContainsFunc(i.Spec.Rules, func(r networkingv1.IngressRule) bool { return r.Host == named }) {
			continue
		}
		t.see(snapshot.Ingress, snapshot.KeyOf(i))
		if _, ours := classes.Of(i); ours {
			pathless = append(pathless, snapshot.KeyOf(i).String())
			continue
		}
		why := "class " + quoteOr(ingress(i).Class, "none")
		if _, exists := t.Cluster.IngressClasses.Get(snapshot.Key{Name: ingress(i).Class}); !exists && ingress(i).Class != "" {
			why += ", which does not exist"
			gone = true
		}
		if classes.Elsewhere(i) {
			why = classes.Why(i.Namespace)
		} else {
			byClass = true
		}
		foreign = append(foreign, fmt.Sprintf("Ingress %s (%s)", snapshot.KeyOf(i), why))
	}
	switch {
	case len(pathless) > 0:
		return fmt.Sprintf("404: Ingress %s has a rule for host %s, of which no path is served: give it paths, or see its problems", names(pathless, 3), named)
	case len(foreign) == 0:
		return ""
	}
	why := fmt.Sprintf("404: host %s is in %s, which is not served here", host, names(foreign, 3))
	switch {
	case byClass && t.ByFlags:
		why += " by the flags given; if the installation adopts that class, leave --local away, or give --adopt-ingress-controller, too"
	case byClass:
		how := "--adopt-ingress-controller (ingressClass.adoptControllers of the chart)"
		if gone { // perhaps with the chart of ingress-nginx
			how = "--adopt-ingress-class (ingressClass.adoptNames of the chart)"
		}
		why += "; write ingressClassName: " + cmp.Or(t.Assign.Classes.Name, ingressclass.DefaultName) + ", or adopt the class with " + how
	}
	return why
}

func quoteOr(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return strconv.Quote(s)
}

// front traces the way to the proxies, at the address in the status of the
// Ingress, and returns the nodes that they run on, if that is known.
func (t *tracer) front(r *route.Route, port int32) (nodes []string) {
	i, ok := t.Cluster.Ingresses.Get(r.Owner.Key)
	if !ok || len(i.Status.LoadBalancer.Ingress) == 0 {
		t.broken("address", "Ingress %s has no address: %s", r.Owner.Key, t.whyNoFront())
		return nil
	}
	for _, in := range i.Status.LoadBalancer.Ingress {
		ip, err := netip.ParseAddr(in.IP)
		if err != nil {
			t.unknown("address", "Ingress %s is at %s, by --publish-address", r.Owner.Key, in.Hostname)
			t.selves(port)
			continue
		}
		ip = ip.Unmap()
		t.end(ip, uint16(port))
		holders, listers := t.holders(ip)
		holders = append(holders, listers...)
		if len(holders) == 0 && t.Embedded {
			t.works("address", "Ingress %s is at %s, on this machine", r.Owner.Key, ip)
			continue
		}
		if len(holders) == 0 {
			t.unknown("address", "Ingress %s is at %s, which no Service holds: it is published by --publish-address", r.Owner.Key, ip)
			t.selves(port)
			continue
		}
		// Services may share this address: the request goes to the one with its port.
		front := holders[max(0, slices.IndexFunc(holders, tcp(port).in))]
		t.works("address", "Ingress %s is at %s, held by Service %s", r.Owner.Key, ip, snapshot.KeyOf(front))
		t.announced(front, ip)
		nodes = append(nodes, t.proxies(front, ip, port)...)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// selves notes the proxies as who asks the backend, where it is not known what is in front
// of them.
func (t *tracer) selves(port int32) {
	for _, key := range t.Self {
		s, ok := t.Cluster.Services.Get(key)
		if !ok {
			continue
		}
		for _, p := range s.Spec.Ports {
			if tcp(port).is(p) {
				t.hop(s, p, false)
			}
		}
	}
}

// whyNoFront says why there is no address at which the proxies are reached.
func (t *tracer) whyNoFront() string {
	for _, key := range t.Self {
		s, ok := t.Cluster.Services.Get(key)
		switch {
		case !ok:
			continue
		case s.Spec.Type != corev1.ServiceTypeLoadBalancer:
			return fmt.Sprintf("Service %s of the proxies is of type %s; make it a LoadBalancer, or name the address by --publish-address", key, cmp.Or(s.Spec.Type, corev1.ServiceTypeClusterIP))
		case len(s.Status.LoadBalancer.Ingress) == 0:
			t.see(snapshot.Service, key)
			return fmt.Sprintf("Service %s of the proxies has none: %s", key, t.whyNone(s))
		}
		return fmt.Sprintf("it gets that of Service %s as soon as the controller's leader has written it; does one run?", key)
	}
	return "there is no Service of the proxies; install them (proxy.enabled of the chart), or name the address by --publish-address"
}

// tcp is a port that receives requests.
func tcp(port int32) servicePort { return servicePort{port, corev1.ProtocolTCP} }

// proxies looks at the proxies behind their own Service, and returns the nodes
// of those that can get a request to ip.
func (t *tracer) proxies(front *corev1.Service, ip netip.Addr, port int32) (nodes []string) {
	key := snapshot.KeyOf(front)
	if !tcp(port).in(front) && !t.Embedded { // `up` has ports of its own
		t.broken("proxy", "Service %s has no port %s", key, tcp(port))
		return nil
	}
	t.endpoints("proxy", front, ip, tcp(port).is)
	near := t.announcers(key, ip)
	anywhere := policyOf(front) != corev1.ServiceExternalTrafficPolicyLocal || len(near) == 0
	for _, slice := range t.Cluster.SlicesOf(key) {
		if !t.reaches(ip, slice) {
			continue
		}
		for _, e := range slice.Endpoints {
			if e.NodeName != nil && (anywhere || near[*e.NodeName]) && loadbalancer.StateOf(e.Conditions) == loadbalancer.Ready {
				nodes = append(nodes, *e.NodeName)
			}
		}
	}
	return nodes
}

// certificate looks at what a client would be shown.
func (t *tracer) certificate(r *route.Route, host string) {
	if key, unread := t.unreadCertificate(host); unread {
		t.unknown("certificate", "Secret %s could not be read by this account", key)
		return
	}
	list, nameOne := t.Routes.Certificates(host), fmt.Sprintf("name a Secret for host %s in spec.tls of Ingress %s", host, r.Owner.Key)
	if len(list) == 0 {
		t.broken("certificate", "there is none for %s, and no default: %s", host, cmp.Or(t.flawedSecret(host), nameOne))
		return
	}
	for _, c := range list {
		which := ""
		if len(list) > 1 {
			which = "that with " + c.Leaf.PublicKeyAlgorithm.String() + ": "
		}
		switch leaf := c.Leaf; {
		case !t.Now.IsZero() && t.Now.After(leaf.NotAfter):
			t.broken("certificate", "%sexpired at %s; renew it in the Secret that spec.tls of Ingress %s names", which, leaf.NotAfter.UTC().Format("2006-01-02 15:04 MST"), r.Owner.Key)
		case leaf.VerifyHostname(host) != nil:
			t.broken("certificate", "%s%s; %s", which, leaf.VerifyHostname(host), cmp.Or(t.flawedSecret(host), nameOne))
		default:
			t.works("certificate", "%sfor %s, until %s", which, names(leaf.DNSNames, 3), leaf.NotAfter.UTC().Format("2006-01-02"))
		}
	}
}

// flawedSecret says what is wrong with a Secret that was to hold the certificate of a
// host; "": there is none.
func (t *tracer) flawedSecret(host string) string {
	for _, i := range t.Cluster.Ingresses.Sorted() {
		for _, entry := range i.Spec.TLS {
			if entry.SecretName == "" || !t.mayCover(i, entry, host) {
				continue
			}
			about := snapshot.Key{Namespace: i.Namespace, Name: entry.SecretName}
			for _, p := range t.Inputs.Problems {
				if p.Object.Key == snapshot.KeyOf(i) && isFlaw(p.Reason) && strings.Contains(p.Message, "Secret "+about.String()+" ") {
					return p.Message
				}
			}
		}
	}
	return ""
}

// isFlaw reports whether a Problem keeps a certificate from being served.
func isFlaw(reason string) bool {
	return reason == route.MissingSecret || reason == route.InvalidSecret || reason == route.CertificateMismatch
}

// routed says which rule matches.
func (t *tracer) routed(r *route.Route, path []byte) {
	t.see(snapshot.Ingress, r.Owner.Key)
	where := "default backend"
	switch {
	case r.NoRule:
		where = fmt.Sprintf("host %s, which has no rule for that", r.Host)
	case r.Path != "":
		where = fmt.Sprintf("host %s, path %s (%s)", quoteOr(r.Host, "any"), r.Path, r.Type)
	}
	if r.Unread {
		t.unknown("route", "%s matches Ingress %s, %s; whether it is open is not known: %s", path, r.Owner.Key, where, r.Closed)
		return
	}
	if r.Closed != "" && t.unseen("route", snapshot.Service, fmt.Sprintf("%s matches Ingress %s, %s; whether it is open", path, r.Owner.Key, where)) {
		return
	}
	if r.Closed != "" {
		why := r.Closed
		if full, ok := t.problem(snapshot.Ingress, r.Owner.Key, netip.Addr{}, route.RouteClosed); ok && strings.HasPrefix(full, why) {
			why = full // with what to do about it, which is no business of clients
		}
		t.broken("route", "Ingress %s, %s, is closed with 503: %s", r.Owner.Key, where, why)
		return
	}
	if !r.NoRule { // else it is told when it is clear that nothing else answers
		t.works("route", "%s matches Ingress %s, %s", path, r.Owner.Key, where)
	}
}

// backend looks at the Service behind the route, from each node with a proxy.
func (t *tracer) backend(r *route.Route, nodes []string) {
	b := t.Routes.Backends[r.Backend]
	if b.Outside {
		t.path.Backend = b.Service.Name
		t.works("backend", "%s is outside of the cluster, and the proxies look it up: port %s", b.Service.Name, b.Port)
		return
	}
	t.see(snapshot.Service, b.Service)
	t.path.Backend = b.Service.String()
	svc, ok := t.Cluster.Services.Get(b.Service)
	if !ok {
		if !t.unseen("backend", snapshot.Service, "Service "+b.Service.String()) {
			t.broken("backend", "Service %s does not exist", b.Service)
		}
		return
	}
	if svc.Spec.Type == corev1.ServiceTypeExternalName {
		t.works("backend", "Service %s stands for %s, which the proxies look up: port %s", b.Service, svc.Spec.ExternalName, b.Port)
		return
	}
	if port, err := b.Port.Find(svc); err == nil {
		t.hop(svc, port, true)
	}
	compile := func(node string, anyNode bool) *balance.Set {
		options := balance.Options{AnyNode: anyNode, AllowLoopback: t.Embedded}
		return balance.Compile(svc, t.Cluster.SlicesOf(b.Service), b.Port, node, t.zone(node), options)
	}
	all := compile("", true)
	lacking := slices.DeleteFunc(nodes, func(n string) bool { return len(compile(n, b.AnyNode).Endpoints) > 0 })
	switch {
	case len(all.Endpoints) == 0 && t.unseen("backend", snapshot.EndpointSlice, "the pods of Service "+b.Service.String()):
	case len(all.Endpoints) == 0:
		t.broken("backend", "503: %s%s%s", all.Why, t.podless(svc), t.replaced(r))
	case len(lacking) > 0:
		t.broken("backend", "503 from the proxies on %s: Service %s has externalTrafficPolicy: Local, and its endpoints are %s; run a proxy on such a node, or set the policy to Cluster",
			names(lacking, 5), b.Service, endpointsOf(all))
	default:
		t.works("backend", "port %s of Service %s: %s", b.Port, b.Service, endpointsOf(all))
	}
}

// podless says what pods a Service looks for that has none at all.
func (t *tracer) podless(s *corev1.Service) string {
	has := func(slice *discoveryv1.EndpointSlice) bool { return len(slice.Endpoints) > 0 }
	if len(s.Spec.Selector) == 0 || slices.ContainsFunc(t.Cluster.SlicesOf(snapshot.KeyOf(s)), has) {
		return ""
	}
	return "; see that ready pods match its selector " + selector(s) + " and have its targetPort"
}

func (t *tracer) zone(node string) string {
	n, ok := t.Cluster.Nodes.Get(snapshot.Key{Name: node})
	if !ok {
		return ""
	}
	return n.Labels[corev1.LabelTopologyZone]
}

func endpointsOf(set *balance.Set) string {
	var list []string
	for _, e := range set.Endpoints {
		text := e.Addr.String()
		if e.Node != "" {
			text += " on " + e.Node
		}
		list = append(list, text)
	}
	text := names(list, 4)
	if set.Draining {
		text += " (terminating, none is ready)"
	}
	return text
}

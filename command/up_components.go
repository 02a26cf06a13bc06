package command

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"slices"
	"time"

	"quayside.io/cluster"
	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
	"quayside.io/command/demo"
	"quayside.io/command/explain"
	"quayside.io/command/forward"
	"quayside.io/controller"
	"quayside.io/controller/assign"
	"quayside.io/proxy"
	"quayside.io/proxy/route"
	"quayside.io/proxy/serve"
)

// runComponents connects the components to the files and shows what they do.
func (e *env) runComponents(ctx context.Context, files *cluster.Files, f upFlags, p *process) error {
	control, err := controller.New(controller.Options{
		Source: files.Source, Writer: files, Assign: f.assignOptions(files.Snapshot()),
		Log: p.component("controller"), Registerer: p.registry,
	})
	if err != nil {
		return err
	}
	options, err := f.proxy.options(files.Source, p, e.stdout)
	if err != nil {
		return err
	}
	options.AllowLoopback = true
	options.LameDuck = 0 // nobody else sends to this process
	options.Listeners = f.listeners
	front, err := proxy.New(options)
	if err != nil {
		return err
	}
	forwarding := newForwardLoop(files, f.proxy.nodeName, p.component("forward"))
	findings := []func() []snapshot.Problem{control.Problems, front.Problems, forwarding.problems}
	tasks := []task{running(files.Run), control, running(forwarding.run)}
	if f.announce {
		speaking, err := localSpeaker(files, f.proxy.nodeName, f.proxy.namespace, p)
		if err != nil {
			return err
		}
		tasks, findings = append(tasks, speaking), append(findings, speaking.Problems)
	}
	problems := func() (all []snapshot.Problem) {
		for _, find := range findings {
			all = append(all, find()...)
		}
		return all
	}
	inputs := func() explain.Inputs { return f.inputs(files.Snapshot(), problems(), front.Table()) }
	s := &screen{out: e.stdout, header: func() string { return upHeader(files.Snapshot(), front.Listeners()) + waitingFor(front) }, inputs: inputs}
	tasks = append(tasks, running(s.run))
	if f.demo {
		d := demo.New(files, f.loopback, demoPace, func() (netip.AddrPort, bool) { return proxyAt(files.Snapshot(), front.Listeners(), false) }, p.log)
		s.header = func() string { return demoHeader(files.Snapshot(), front.Listeners(), d.Stats()) }
		tasks = append(tasks, running(d.Run))
	}
	p.admin.Trace(tracing(func(context.Context) func() explain.Inputs {
		return func() explain.Inputs {
			s := inputs()
			s.Routes = cmp.Or(s.Routes, &route.Table{})
			return s
		}
	}))
	state := func() any {
		return struct {
			*explain.Report
			Proxy any `json:"proxy"`
		}{explain.Status(inputs()), front.State()}
	}
	return p.run(ctx, front, state, tasks...)
}

// inputs are those of this process.
func (f *upFlags) inputs(c *snapshot.Cluster, problems []snapshot.Problem, routes *route.Table) explain.Inputs {
	return explain.Inputs{
		Cluster: c, Problems: problems, Assign: f.assignOptions(c), Routes: routes, Now: time.Now(),
		Embedded: true, Node: f.proxy.nodeName, PortOf: forward.Port, Self: []snapshot.Key{proxyService()},
	}
}

// assignOptions are those of the allocator. The Ingresses are at the address of
// the proxy's Service if the manifests have one, else at our own.
func (f *upFlags) assignOptions(c *snapshot.Cluster) assign.Options {
	o := assign.Options{DefaultLoadBalancer: true, Classes: f.proxy.ingress.classes()}
	if _, ok := c.Services.Get(proxyService()); ok {
		o.PublishService = proxyService()
		return o
	}
	o.PublishAddresses = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}
	if at, err := netip.ParseAddrPort(f.proxy.http); err == nil && !at.Addr().IsUnspecified() {
		o.PublishAddresses = []netip.Addr{at.Addr()}
	}
	return o
}

// proxyService is the Service of the proxy itself, as the chart and the demo
// name it. It has no endpoints here: `up` listens on its addresses.
func proxyService() snapshot.Key {
	return snapshot.Key{Namespace: "quayside-system", Name: "quayside-proxy"}
}

// proxyAddresses are the loopback addresses of the proxy's own Service.
func proxyAddresses(c *snapshot.Cluster) []netip.Addr {
	s, ok := c.Services.Get(proxyService())
	if !ok {
		return nil
	}
	return slices.DeleteFunc(loadbalancer.Addresses(s), func(a netip.Addr) bool { return !a.IsLoopback() })
}

// listeners are what the proxy opens beyond --http and --https: the addresses
// of its own Service. A listener on all addresses has them already.
func (f *upFlags) listeners(c *snapshot.Cluster) []serve.Listener {
	var list []serve.Listener
	for _, ip := range proxyAddresses(c) {
		for _, at := range []struct {
			address string
			tls     bool
		}{{f.proxy.http, false}, {f.proxy.https, true}} {
			host, port, err := net.SplitHostPort(at.address)
			if err != nil || isEveryAddress(host) || host == ip.String() {
				continue
			}
			list = append(list, serve.Listener{Address: net.JoinHostPort(ip.String(), port), TLS: at.tls})
		}
	}
	return list
}

func isEveryAddress(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "" || err == nil && ip.IsUnspecified()
}

// proxyAt is where the proxy's own Service is reached, by HTTP or HTTPS: what is
// bound says so, since a flag may leave the port to the system.
func proxyAt(c *snapshot.Cluster, all []serve.ListenerState, tls bool) (netip.AddrPort, bool) {
	for _, ip := range proxyAddresses(c) {
		for _, l := range all {
			at, err := netip.ParseAddrPort(l.Bound)
			if err == nil && l.TLS == tls && (at.Addr() == ip || at.Addr().IsUnspecified()) {
				return netip.AddrPortFrom(ip, at.Port()), true
			}
		}
	}
	return netip.AddrPort{}, false
}

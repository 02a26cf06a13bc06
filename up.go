package main

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"quayside.io/controller"
	"quayside.io/controller/assign"
	"quayside.io/controller/cluster"
	"quayside.io/controller/explain"
	"quayside.io/controller/manifest"
	"quayside.io/controller/snapshot"
	"quayside.io/proxy"
	"quayside.io/proxy/demo"
	"quayside.io/proxy/forward"
	"quayside.io/proxy/route"
	"quayside.io/proxy/serve"
)

// demoPace is how often the demo replaces a pod.
const demoPace = 2 * time.Second

// upFlags are the flags of `up`.
type upFlags struct {
	proxy    proxyFlags
	files    []string
	demo     bool
	once     bool
	announce bool
}

func (e *env) upCommand() *cobra.Command {
	var f upFlags
	c := &cobra.Command{
		Use:   "up",
		Short: "All of Quayside in one process, from manifest files",
		Long: `All of Quayside in one process, from manifest files that may change while it
runs: it allocates, routes and serves, without a cluster and without root.
LoadBalancer Services with a loopback address are reached there, ports below
1024 at 8000 more: 80 becomes 8080.`,
		Example: "  quayside up --demo\n  quayside up -f manifests/ --once",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			f.defaults(func(name string) bool { return c.Flags().Changed(name) }, e)
			return e.runUp(c.Context(), f)
		},
	}
	f.proxy.add(c.Flags())
	c.Flags().StringArrayVarP(&f.files, "filename", "f", nil, "manifest file or folder (repeatable)")
	c.Flags().BoolVar(&f.demo, "demo", false, "bring a small cluster with pods that come and go")
	c.Flags().BoolVar(&f.once, "once", false, "compile, print, and end: 0, or 2 if there are problems")
	c.Flags().BoolVar(&f.announce, "announce", false, "announce addresses on the LAN too; needs root")
	return c
}

// defaults changes what was not asked for: a demo is on loopback only, and the
// screen of `up` is a table that a log would tear.
func (f *upFlags) defaults(changed func(flag string) bool, e *env) {
	if f.demo && !changed("http") {
		f.proxy.http = "127.0.0.1:8080"
	}
	if f.demo && !changed("https") {
		f.proxy.https = "127.0.0.1:8443"
	}
	if !changed("log-level") {
		e.logLevel = "error"
	}
}

func (e *env) runUp(ctx context.Context, f upFlags) error {
	if len(f.files) == 0 && !f.demo {
		return fmt.Errorf("%w: name manifests with -f FILE or DIR, or try --demo", errBadInput)
	}
	o, err := e.outfit()
	if err != nil {
		return err
	}
	var embedded fs.FS
	if f.demo {
		embedded = demo.Manifests()
	}
	files, err := cluster.NewFiles(f.files, embedded, cluster.FilesOptions{
		NodeName: f.proxy.nodeName, IngressClass: f.proxy.ingressClass, Log: o.log,
	})
	if err != nil {
		return fmt.Errorf("%w: %w", errBadInput, err)
	}
	if f.once {
		return e.runOnce(ctx, files, f)
	}
	return e.runHalls(ctx, files, f, o)
}

// runHalls wires the halls to the files and shows what they do.
func (e *env) runHalls(ctx context.Context, files *cluster.Files, f upFlags, o *outfit) error {
	control, err := controller.New(controller.Options{
		Source: files.Source, Writer: files, Assign: f.assignOptions(files.Snapshot()),
		Log: o.log.With("hall", "controller"), Registerer: o.registry,
	})
	if err != nil {
		return err
	}
	options, err := f.proxy.options(files.Source, o)
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
	carrier := newCarrier(files, f.proxy.nodeName, o)
	findings := []func() []snapshot.Problem{control.Problems, front.Problems, carrier.problems}
	tasks := []task{files.Run, control.Run, carrier.run, o.admin.Run}
	if f.announce {
		hall, err := localSpeaker(files, f.proxy.nodeName, o)
		if err != nil {
			return err
		}
		tasks, findings = append(tasks, hall.Run), append(findings, hall.Problems)
	}
	problems := func() (all []snapshot.Problem) {
		for _, find := range findings {
			all = append(all, find()...)
		}
		return all
	}
	s := &screen{out: e.stdout, header: func() string { return f.serving(files.Snapshot()) }, report: func() *explain.Report {
		return explain.Status(files.Snapshot(), problems())
	}}
	tasks = append(tasks, s.run)
	if f.demo {
		d := demo.New(files, demoPace, func() (netip.AddrPort, bool) { return f.front(files.Snapshot()) }, o.log)
		s.header = func() string { return demoHeader(files.Snapshot(), f, d.Stats()) }
		tasks = append(tasks, d.Run)
	}
	o.admin.Ready(front.Ready)
	o.admin.State(func() any {
		return struct {
			*explain.Report
			Proxy any `json:"proxy"`
		}{explain.Status(files.Snapshot(), problems()), front.State()}
	})
	o.admin.Trace(tracing(func() explain.Scene {
		c := files.Snapshot()
		return explain.Scene{
			Cluster: c, Problems: problems(), Secrets: true, Embedded: true, Self: demo.ProxyService(), Now: time.Now(), Routes: cmp.Or(front.Table(), &route.Table{}),
		}
	}))
	return serveUntilDrained(ctx, front.Run, tasks...)
}

// runOnce compiles until nothing is left to write, prints, and ends.
func (e *env) runOnce(ctx context.Context, files *cluster.Files, f upFlags) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- files.Run(ctx) }() // it enters what is written
	var plan *assign.Plan
	for {
		plan = assign.Compile(files.Snapshot(), plan, nil, time.Now(), f.assignOptions(files.Snapshot()))
		if len(plan.Updates) == 0 {
			break
		}
		for _, u := range plan.Updates {
			if err := files.UpdateStatus(ctx, u.Object()); err != nil {
				return err
			}
		}
	}
	c := files.Snapshot()
	table := route.Compile(c, nil, route.Options{IngressClass: f.proxy.ingressClass, AdoptControllers: f.proxy.adopt, Now: time.Now()})
	cancel()
	if err := <-done; err != nil {
		return err
	}
	report := explain.Status(c, append(plan.Problems, table.Problems...))
	if err := report.WriteText(e.stdout); err != nil {
		return err
	}
	n := 0
	for _, p := range report.Problems {
		if !manifest.IsNote(p.Reason) {
			n++
		}
	}
	if n > 0 {
		return fmt.Errorf("%w: %d problems", errBadInput, n)
	}
	return nil
}

// assignOptions are those of the allocator. The Ingresses are at the address of
// the proxy's Service if the manifests have one, else at our own.
func (f *upFlags) assignOptions(c *snapshot.Cluster) assign.Options {
	o := assign.Options{
		DefaultLoadBalancer: true,
		IngressClass:        f.proxy.ingressClass, AdoptIngressControllers: f.proxy.adopt,
	}
	if _, ok := c.Services.Get(demo.ProxyService()); ok {
		o.PublishService = demo.ProxyService()
		return o
	}
	o.PublishAddresses = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}
	if at, err := netip.ParseAddrPort(f.proxy.http); err == nil && !at.Addr().IsUnspecified() {
		o.PublishAddresses = []netip.Addr{at.Addr()}
	}
	return o
}

// proxyAddresses are the loopback addresses of the proxy's own Service.
func proxyAddresses(c *snapshot.Cluster) []netip.Addr {
	s, ok := c.Services.Get(demo.ProxyService())
	if !ok {
		return nil
	}
	var list []netip.Addr
	for _, in := range s.Status.LoadBalancer.Ingress {
		if ip, err := netip.ParseAddr(in.IP); err == nil && ip.IsLoopback() {
			list = append(list, ip)
		}
	}
	return list
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

// front is where a client of this machine reaches the proxy by HTTP.
func (f *upFlags) front(c *snapshot.Cluster) (netip.AddrPort, bool) {
	_, port, err := net.SplitHostPort(f.proxy.http)
	if err != nil {
		return netip.AddrPort{}, false
	}
	for _, ip := range proxyAddresses(c) {
		at, err := netip.ParseAddrPort(net.JoinHostPort(ip.String(), port))
		return at, err == nil
	}
	return netip.AddrPort{}, false
}

// serving is the header of the screen.
func (f *upFlags) serving(c *snapshot.Cluster) string {
	var b strings.Builder
	for _, at := range []struct{ scheme, address string }{{"HTTP", f.proxy.http}, {"HTTPS", f.proxy.https}} {
		if at.address != "" {
			fmt.Fprintf(&b, "Ingresses by %s on %s. ", at.scheme, at.address)
		}
	}
	if at, ok := f.front(c); ok {
		fmt.Fprintf(&b, "Also on %s.", at)
	}
	return b.String() + "\n\n"
}

// carrier keeps the forwarder in step with Services and endpoints.
type carrier struct {
	files *cluster.Files
	node  string
	hand  *forward.Forwarder
	plan  atomic.Pointer[forward.Plan]
}

func newCarrier(files *cluster.Files, node string, o *outfit) *carrier {
	return &carrier{files: files, node: node, hand: forward.New(o.log.With("hall", "forward"))}
}

func (c *carrier) run(ctx context.Context) error {
	changes := c.files.Watch(snapshot.Service, snapshot.EndpointSlice, snapshot.SpeakerStatus)
	defer changes.Stop()
	return serveAll(ctx, c.hand.Run, func(ctx context.Context) error {
		for {
			c.plan.Store(forward.Compile(c.files.Snapshot(), c.plan.Load(), demo.ProxyService(), c.node))
			c.hand.Set(c.plan.Load())
			select {
			case <-ctx.Done():
				return nil
			case <-changes.C():
			}
		}
	})
}

func (c *carrier) problems() []snapshot.Problem {
	if p := c.plan.Load(); p != nil {
		return p.Problems
	}
	return nil
}

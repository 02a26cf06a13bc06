package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/accesslog"
	"quayside.io/proxy/asker"
	"quayside.io/proxy/dispatch"
	"quayside.io/proxy/exporter"
	"quayside.io/proxy/h2"
	"quayside.io/proxy/linewriter"
	"quayside.io/proxy/route"
	"quayside.io/proxy/serve"
	"quayside.io/proxy/spool"
	"quayside.io/proxy/stapler"
	"quayside.io/proxy/upstream"
	"quayside.io/proxy/waf"
)

// Options are what a Proxy is made with.
type Options struct {
	// Source must watch Kinds.
	Source *cluster.Source

	// NodeName is the node that the proxy runs on: Services with
	// externalTrafficPolicy: Local are reached through its endpoints only.
	NodeName string
	// HTTP and HTTPS are the addresses to serve on, as "host:port" or ":port";
	// empty: not at all.
	HTTP, HTTPS string
	// Listeners, if set, returns further listeners that c calls for.
	Listeners func(c *snapshot.Cluster) []serve.Listener
	// Routes say which Ingresses are served. The proxy itself sets
	// FallbackCertificate and Now.
	Routes route.Options

	// TrustedProxies, ProxyProtocol and GracePeriod are those of serve.Options.
	TrustedProxies []netip.Prefix
	ProxyProtocol  bool
	GracePeriod    time.Duration
	// LameDuck is how long the proxy goes on accepting connections after it was
	// asked to stop, until nobody sends it any more.
	LameDuck time.Duration
	// RedirectPort is the port of HTTPS that clients see, for redirects that name it;
	// 443.
	RedirectPort int
	// HTTP2 offers HTTP/2 on HTTPS. H2C serves it on HTTP as well, to clients that
	// know it beforehand; it needs HTTP2.
	HTTP2, H2C bool
	// AccessLog is what is logged of requests; without a format nothing is.
	AccessLog AccessLog
	// BodyFiles are where request bodies are kept that are too long for memory.
	BodyFiles BodyFiles
	// Hostname is the name of the machine, or of the pod, which is $hostname.
	Hostname string
	// Places say where clients are. The proxy serves once it has all of them.
	Places Places
	// TerseErrors keeps the names of Services and annotations out of what clients
	// are told; the log has them.
	TerseErrors bool
	// Refuse are addresses that no Service of type ExternalName leads to, beside those
	// of nodes and of the API server as the cluster has them.
	Refuse []netip.Addr
	// DialDNS connects to a DNS server; nil: as the system does.
	DialDNS func(ctx context.Context, network, address string) (net.Conn, error)
	// FirstPause is that of the stapler and of the exporter, for tests; 0: their own.
	FirstPause time.Duration
	// AllowLoopback accepts endpoints on loopback addresses, for `up`.
	AllowLoopback bool

	// Tickets is the Secret with the keys of TLS session tickets and of session cookies,
	// see package tickets. Zero: nobody else resumes the sessions that begin here.
	Tickets snapshot.Key

	// CountHosts is how many hosts have their requests counted by name; 0: none. Nginx, if
	// set, shows metrics under the names of ingress-nginx, too.
	CountHosts int
	Nginx      *dispatch.NginxNames

	// Log and Registerer may be nil: then nothing is logged or measured.
	Log        *slog.Logger
	Registerer prometheus.Registerer
}

// AccessLog is what is logged of requests.
type AccessLog struct {
	Format *accesslog.Format
	// Share is how many are logged, from 0 to 1.
	Share float64
	// To is where the lines are written; a write may wait.
	To io.Writer
}

// BodyFiles are temporary files of request bodies, see spool.Options. A body that
// is longer than a quarter of Size is streamed.
type BodyFiles struct {
	Dir  string
	Size int64 // bytes; 0: there are no files
}

// Kinds are those that a Proxy reads.
func Kinds() []snapshot.Kind {
	return []snapshot.Kind{
		snapshot.Service, snapshot.EndpointSlice, snapshot.Ingress, snapshot.IngressClass, snapshot.Secret, snapshot.ConfigMap,
		snapshot.Node, snapshot.Namespace, snapshot.SpeakerStatus,
	}
}

// Proxy is the component. Make one with New.
type Proxy struct {
	options   Options
	asker     *asker.Asker
	stapler   *stapler.Stapler
	exporter  *exporter.Exporter
	dispatch  *dispatch.Dispatcher
	server    *serve.Server
	http2     *h2.Server
	engine    *upstream.Engine
	endpoints *endpoints
	fallback  *tls.Certificate
	table     atomic.Pointer[route.Table]
	changed   atomic.Int64 // when it last did, in ns since 1970
	leaving   atomic.Bool
	draining  atomic.Bool
	forwards  []dispatch.Forwarder                 // of table; the routes loop's alone
	secured   map[*upstream.Backend]*corev1.Secret // what its TLS was made of; the routes loop's alone
	sealed    *corev1.Secret                       // what tickets are sealed by; the routes loop's alone
	cookies   *cookieKey                           // what session cookies are sealed by
	stapling  bool                                 // OCSP responses are fetched; the routes loop's alone
	metrics   *metrics
	lines     *linewriter.Writer // nil: no access log
	spool     *spool.Spool       // nil: no files
	firewall  *waf.Driver        // nil: none is allowed
	places    *placeFiles        // nil: it is not known where clients are
}

// New returns a Proxy that does nothing yet.
func New(o Options) (*Proxy, error) {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	fallback, err := selfSigned(time.Now())
	if err != nil {
		return nil, fmt.Errorf("make a default certificate: %w", err)
	}
	if o.ProxyProtocol && len(o.TrustedProxies) == 0 {
		o.Log.Warn("PROXY protocol is on but no proxy is trusted: set --trusted-proxies, or every client is known by the load balancer's address")
	}
	engine := upstream.New(upstream.Options{Log: o.Log, TerseErrors: o.TerseErrors})
	p := &Proxy{
		options:   o,
		engine:    engine,
		endpoints: newEndpoints(o),
		secured:   map[*upstream.Backend]*corev1.Secret{},
		fallback:  fallback,
		cookies:   newCookieKey(o),
	}
	p.asker = asker.New(asker.Options{Service: p.serviceEndpoints, AllowLoopback: o.AllowLoopback, Log: o.Log})
	p.stapler = stapler.New(stapler.Options{Refuse: p.refuse, FirstPause: o.FirstPause, Log: o.Log})
	p.exporter = exporter.New(exporter.Options{Dial: p.dialCollector, Node: o.NodeName, FirstPause: o.FirstPause, Log: o.Log})
	dispatching := dispatch.Options{Spans: p.exporter, Log: o.Log, TrustedProxies: o.TrustedProxies, TerseErrors: o.TerseErrors, RedirectPort: o.RedirectPort, Asker: p.asker, AccessLog: p.accessLog(), Files: p.bodyFiles(), CountHosts: o.CountHosts, Hostname: o.Hostname, Nginx: o.Nginx}
	if o.Routes.ModSecurity {
		p.firewall = waf.New(waf.Options{Log: o.Log})
		dispatching.Inspector = p.firewall.Inspector
	}
	if o.Places.Databases != nil {
		p.places = newPlaceFiles(o.Places, o.Log)
	}
	p.dispatch = dispatch.New(dispatching)
	p.http2 = h2.New(h2.Options{Handler: p.dispatch, Log: o.Log})
	front := serve.Options{
		Handler: p.dispatch, Certificate: p.certificate, ClientCAs: p.dispatch.ClientCAs, TLSPolicy: p.dispatch.TLSPolicy, Ciphers: p.dispatch.Ciphers,
		OfferHTTP2: p.dispatch.HTTP2,
		Log:        o.Log, TrustedProxies: o.TrustedProxies, ProxyProtocol: o.ProxyProtocol,
		GracePeriod: o.GracePeriod, LameDuck: o.LameDuck, Draining: engine.DrainTunnels, Passthrough: p.dispatch, Spare: p.http2.Spare,
	}
	if o.HTTP2 {
		front.HTTP2 = p.serveHTTP2
	}
	p.server = serve.New(front)
	p.metrics = newMetrics(p)
	if o.Registerer != nil {
		collectors := []prometheus.Collector{
			p.server.Collector(), p.http2.Collector(), p.dispatch.Collector(), engine.Collector(), p.asker.Collector(), p.exporter.Collector(), p.metrics,
		}
		if p.lines != nil {
			collectors = append(collectors, p.lines.Collector())
		}
		if p.spool != nil {
			collectors = append(collectors, p.spool.Collector())
		}
		if p.firewall != nil {
			collectors = append(collectors, p.firewall.Collector())
		}
		if p.places != nil {
			collectors = append(collectors, p.places)
		}
		if o.Nginx != nil {
			collectors = append(collectors, newNginxMetrics(p, *o.Nginx))
		}
		for _, c := range collectors {
			if err := o.Registerer.Register(c); err != nil {
				return nil, fmt.Errorf("register metrics of the proxy: %w", err)
			}
		}
	}
	return p, nil
}

// accessLog makes the writer of the access log, if there is to be one.
func (p *Proxy) accessLog() dispatch.AccessLog {
	o := p.options.AccessLog
	if o.Format == nil || o.To == nil {
		return dispatch.AccessLog{}
	}
	p.lines = linewriter.New(o.To, 0)
	return dispatch.AccessLog{Lines: p.lines, Format: o.Format, Share: o.Share}
}

// bodyFiles makes the spool. Where its folder cannot be written to, bodies are
// streamed that are too long for memory.
func (p *Proxy) bodyFiles() dispatch.Files {
	o := p.options.BodyFiles
	if o.Size <= 0 {
		return dispatch.Files{}
	}
	var err error
	if p.spool, err = spool.New(spool.Options{Dir: o.Dir, Size: o.Size}); err != nil {
		p.options.Log.Warn("request bodies that are too long for memory are streamed, whatever proxy-request-buffering says: there is no place for files; see --body-files", "error", err)
		return dispatch.Files{}
	}
	create := func() (dispatch.File, error) {
		f, err := p.spool.Create()
		if err != nil {
			return nil, err // and no file, not one that is nil
		}
		return f, nil
	}
	return dispatch.Files{Create: create, Largest: o.Size / 4}
}

// Run serves until ctx ends, then drains.
func (p *Proxy) Run(ctx context.Context) error {
	select {
	case <-p.options.Source.Synced():
	case <-ctx.Done():
		return nil
	}
	select {
	case <-p.endpoints.outside.nodes.refer(false):
	case <-time.After(referPatience): // the zone of this node prefers endpoints, and no more
	case <-ctx.Done():
		return nil
	}
	defer context.AfterFunc(ctx, p.drainHTTP2)()
	// Routes and endpoints follow the cluster until the drain is over.
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	g, following := errgroup.WithContext(following)
	if p.places != nil {
		g.Go(func() error { return p.places.run(following) })
		select {
		case <-p.places.all: // until then nobody knows whom guards refuse
		case <-ctx.Done():
			stop()
			return g.Wait()
		}
	}
	if p.firewall != nil { // before the first table, which waits for its rules
		g.Go(func() error { return p.firewall.Run(following) })
	}
	p.followRoutes(ctx)
	g.Go(func() error { return p.engine.Run(following) })
	g.Go(func() error { return p.asker.Run(following) })
	g.Go(func() error { return p.stapler.Run(following) })
	g.Go(func() error { return p.exporter.Run(following) })
	g.Go(func() error { return p.endpoints.outside.names.Run(following) })
	if p.lines != nil {
		g.Go(func() error { return p.lines.Run(following) })
	}
	g.Go(func() error { return p.watchEndpoints(following) })
	g.Go(func() error { return p.watchRoutes(following) })
	g.Go(func() error { return p.watchLeaving(following) })
	g.Go(func() error {
		defer stop()
		return p.server.Run(ctx)
	})
	return g.Wait()
}

// Ready returns nil once the first table is live and every listener of its own
// is open.
func (p *Proxy) Ready() error {
	if p.places != nil {
		if err := p.places.ready(); err != nil {
			return err
		}
	}
	if p.table.Load() == nil {
		return errors.New("no routes yet: the cluster has not been seen in full")
	}
	for _, l := range p.server.Listeners() {
		if l.Required && l.Bound == "" {
			return fmt.Errorf("not listening on %s: %s", l.Address, cmp.Or(l.Error, "not opened yet"))
		}
	}
	return nil
}

// watchRoutes follows everything that a Table is compiled from, and the clock
// where a certificate is about to expire.
func (p *Proxy) watchRoutes(ctx context.Context) error {
	changes := p.options.Source.Watch(snapshot.Ingress, snapshot.IngressClass, snapshot.Service, snapshot.Secret, snapshot.ConfigMap, snapshot.Namespace)
	defer changes.Stop()
	for {
		wake := wakeAt(p.table.Load().NextWake)
		select {
		case <-ctx.Done():
			wake.Stop()
			return nil
		case <-changes.C():
		case <-wake.C:
		}
		wake.Stop()
		p.followRoutes(ctx)
	}
}

// wakeAt returns a timer for at, or for never.
func wakeAt(at time.Time) *time.Timer {
	if at.IsZero() {
		return time.NewTimer(time.Duration(1<<63 - 1))
	}
	return time.NewTimer(max(time.Until(at), time.Second))
}

// followRoutes compiles and publishes: first the endpoints of what is new, then
// the table, and last the end of what no route names any more.
func (p *Proxy) followRoutes(ctx context.Context) {
	start := time.Now()
	old := p.table.Load()
	t := p.compile(ctx, old)
	p.endpoints.seal(p.cookies.key)
	p.server.SetListeners(p.listeners(p.options.Source.Snapshot()))
	if old == nil || t.Version != old.Version {
		p.publish(ctx, t, old)
	}
	p.table.Store(t)
	if old == nil || t.Version != old.Version {
		p.changed.Store(time.Now().UnixNano())
		p.staple(t)
	}
	p.secureAll(p.options.Source.Snapshot())
	p.seal(p.options.Source.Snapshot())
	p.metrics.applied.Observe(time.Since(start).Seconds())
}

func (p *Proxy) publish(ctx context.Context, t, old *route.Table) {
	if old != nil && (isSameList(t.Backends, old.Backends) || slices.Equal(t.Backends, old.Backends)) {
		// Nobody comes and nobody goes. Who has many backends does not look at each of
		// them because a path has changed.
		p.install(ctx, t, p.forwards, false)
		return
	}
	forwards := make([]dispatch.Forwarder, len(t.Backends))
	live := make(map[route.Backend]bool, len(t.Backends))
	for i, of := range t.Backends {
		if of.Service == (snapshot.Key{}) {
			continue
		}
		live[of] = true
		if old != nil && i < len(old.Backends) && old.Backends[i] == of {
			forwards[i] = p.forwards[i]
			continue
		}
		b := p.engine.Backend(of)
		p.secure(b, p.options.Source.Snapshot()) // before it has endpoints: nothing goes out in the clear
		p.endpoints.add(b, p.options.Source.Snapshot())
		forwards[i] = b
	}
	p.install(ctx, t, forwards, old == nil)
	p.forwards = forwards
	p.endpoints.retain(live)
	p.engine.Retain(func(of route.Backend) bool { return live[of] })
	maps.DeleteFunc(p.secured, func(b *upstream.Backend, _ *corev1.Secret) bool { return !live[b.Of()] })
}

// isSameList reports whether two lists are one in memory, which takes no look at what
// is in it.
func isSameList(a, b []route.Backend) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// install puts a table in force whose backends are reached through forwards.
func (p *Proxy) install(ctx context.Context, t *route.Table, forwards []dispatch.Forwarder, first bool) {
	p.keep(t.Connections)
	p.export(t.Collector)
	retain := p.prepareRules(ctx, t, first)
	p.dispatch.SetTable(t, forwards)
	retain()
}

// keep declares how connections are kept. Those that are there may go on as before.
func (p *Proxy) keep(c *route.Connections) {
	if c == nil {
		c = &route.Connections{}
	}
	p.server.SetProxyProtocol((*serve.ProxyProtocol)(c.ProxyProtocol))
	files := descriptors()
	clients := clientsAtMost(c, runtime.GOMAXPROCS(0), files)
	p.server.SetLimits(serve.Limits{Connections: clients, Requests: c.Requests, Idle: c.Waits.Idle, Head: c.Waits.Head, Body: c.Waits.Body, HeadSize: c.HeadSize, LineSize: c.LineSize})
	idle := c.Waits.Idle
	if idle < 0 {
		idle = time.Second // or a client could not get its first request in
	}
	p.http2.SetLimits(h2.Limits{Streams: c.Streams, Requests: c.Requests, Idle: idle, Body: c.Waits.Body, HeadSize: c.HeadSize, LineSize: c.LineSize})
	p.engine.SetKeeping(upstream.Keeping{MaxIdle: c.Idle, IdleTimeout: c.IdleFor, MaxLifetime: c.Life, MaxRequests: c.Uses, MaxOpen: endpointsAtMost(c, clients, files)})
}

// listeners are our own and those that the cluster calls for.
func (p *Proxy) listeners(c *snapshot.Cluster) []serve.Listener {
	var list []serve.Listener
	if p.options.HTTP != "" {
		list = append(list, serve.Listener{Address: p.options.HTTP, H2C: p.options.H2C, Required: true})
	}
	if p.options.HTTPS != "" {
		list = append(list, serve.Listener{Address: p.options.HTTPS, TLS: true, Required: true})
	}
	if p.options.Listeners != nil {
		list = append(list, p.options.Listeners(c)...)
	}
	return list
}

// Listeners returns what the proxy listens on, or is to listen on.
func (p *Proxy) Listeners() []serve.ListenerState { return p.server.Listeners() }

// watchEndpoints follows what the sets are compiled from.
func (p *Proxy) watchEndpoints(ctx context.Context) error {
	changes := p.options.Source.Watch(snapshot.EndpointSlice, snapshot.Service, snapshot.Node)
	defer changes.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changes.C():
			p.endpoints.follow(p.options.Source.Snapshot())
		case <-p.endpoints.outside.names.Changed():
			p.endpoints.resolved()
		}
	}
}

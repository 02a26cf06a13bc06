package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	discoveryv1 "k8s.io/api/discovery/v1"

	"quayside.io/cluster"
	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/cluster/tickets"
	"quayside.io/proxy"
	"quayside.io/proxy/dispatch"
	"quayside.io/proxy/filter"
	"quayside.io/proxy/geoip"
)

// proxyFlags are the flags of `proxy`, which `up` has too.
type proxyFlags struct {
	ingress       ingressFlags
	nodeName      string
	namespace     string
	http, https   string
	trusted       []string
	proxyProtocol bool
	http2, h2c    bool
	redirectPort  int
	grace         time.Duration
	accessLog     accessLogFlags
	bodyFiles     bodyFileFlags
	errorDetail   string
	countHosts    int
	nginxMetrics  bool
	geoipDir      string
}

// The values of --error-detail.
const (
	detailMinimal = "Minimal"
	detailFull    = "Full"
)

// add adds the flags, with the error detail that a command has by default.
func (f *proxyFlags) add(flags *pflag.FlagSet, errorDetail string) {
	f.ingress.add(flags)
	addNamespace(flags, &f.namespace)
	addNodeName(flags, &f.nodeName, "node that this proxy runs on; Services with externalTrafficPolicy: Local are reached through its endpoints only")
	flags.StringVar(&f.http, "http", ":8080", "address to serve HTTP on; empty: not at all")
	flags.StringVar(&f.https, "https", ":8443", "address to serve HTTPS on; empty: not at all")
	flags.StringSliceVar(&f.trusted, "trusted-proxies", nil, "CIDRs or addresses of proxies in front of this one, whose X-Forwarded-* is believed")
	flags.BoolVar(&f.proxyProtocol, "proxy-protocol", false, "expect the PROXY protocol, v1 or v2, from trusted proxies")
	flags.BoolVar(&f.http2, "http2", true, "offer HTTP/2 to clients of --https")
	flags.BoolVar(&f.h2c, "h2c", false, "serve HTTP/2 on --http as well, to clients that know it beforehand; needs --http2")
	flags.IntVar(&f.redirectPort, "redirect-port", 443, "port of HTTPS that clients see, for redirects that use-port-in-redirects makes name it")
	f.accessLog.add(flags)
	f.bodyFiles.add(flags)
	flags.StringVar(&f.errorDetail, "error-detail", errorDetail, "what bodies of errors tell clients: Minimal: no names of Services or annotations, the log has them; Full: all that is known")
	flags.IntVar(&f.countHosts, "metrics-hosts", 1000, "how many hosts of rules have their requests counted by name in quayside_http_host_requests_total; 0: none")
	flags.BoolVar(&f.nginxMetrics, "nginx-metrics", false, "show metrics under the names and labels of ingress-nginx as well, for its dashboards: a histogram for each path, method and status")
	flags.StringVar(&f.geoipDir, "geoip-dir", "/etc/quayside/geoip", "folder of the databases of --maxmind-edition-ids; one that has changed is read within a minute")
	flags.DurationVar(&f.grace, "grace-period", 30*time.Second, "how long requests in progress may take to finish at shutdown")
}

// options turns the flags into those of the component.
func (f *proxyFlags) options(source *cluster.Source, p *process, stdout io.Writer) (proxy.Options, error) {
	routes, err := f.ingress.routes(f.namespace)
	if err != nil {
		return proxy.Options{}, err
	}
	places, _ := routes.Places.(*geoip.Databases)
	accessLog, err := f.accessLog.options(stdout, places)
	if err != nil {
		return proxy.Options{}, err
	}
	if f.errorDetail != detailMinimal && f.errorDetail != detailFull {
		return proxy.Options{}, fmt.Errorf("%w: --error-detail %q: want %s or %s", errBadInput, f.errorDetail, detailMinimal, detailFull)
	}
	bodyFiles, err := f.bodyFiles.options()
	if err != nil {
		return proxy.Options{}, err
	}
	trusted, err := parseTrusted(f.trusted)
	if err != nil {
		return proxy.Options{}, err
	}
	var nginx *dispatch.NginxNames
	pod, err := os.Hostname()
	if err != nil && f.nginxMetrics {
		return proxy.Options{}, fmt.Errorf("name of this pod: %w", err)
	}
	if f.nginxMetrics {
		nginx = &dispatch.NginxNames{Class: ingressclass.Controller, Namespace: f.namespace, Pod: pod}
	}
	return proxy.Options{
		Source: source, NodeName: f.nodeName, HTTP: f.http, HTTPS: f.https, Routes: routes,
		Tickets: snapshot.Key{Namespace: f.namespace, Name: tickets.Name}, Refuse: apiAddresses(), TrustedProxies: trusted, ProxyProtocol: f.proxyProtocol, GracePeriod: f.grace, LameDuck: lameDuck(f.grace),
		HTTP2: f.http2, H2C: f.h2c, RedirectPort: f.redirectPort, AccessLog: accessLog, BodyFiles: bodyFiles, TerseErrors: f.errorDetail == detailMinimal,
		CountHosts: f.countHosts, Nginx: nginx, Hostname: pod, Places: proxy.Places{Databases: places, Dir: f.geoipDir},
		Log: p.component("proxy"), Registerer: p.registry,
	}, nil
}

// parseTrusted reads --trusted-proxies. An address alone is a CIDR that holds nothing else,
// as in proxy-real-ip-cidr.
func parseTrusted(list []string) (trusted []netip.Prefix, err error) {
	for _, text := range list {
		text = strings.TrimSpace(text)
		ip, err := netip.ParseAddr(text)
		if err == nil {
			ip = ip.Unmap().WithZone("")
			trusted = append(trusted, netip.PrefixFrom(ip, ip.BitLen()))
			continue
		}
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%w: --trusted-proxies: %w", errBadInput, err)
		}
		trusted = append(trusted, filter.Unmapped(prefix))
	}
	return trusted, nil
}

// apiHost is in the environment of every container of a pod.
const apiHost = "KUBERNETES_SERVICE_HOST"

// apiAddresses is where this process's pod finds the API server, if it is in one.
func apiAddresses() []netip.Addr {
	addr, err := netip.ParseAddr(os.Getenv(apiHost))
	if err != nil {
		return nil
	}
	return []netip.Addr{addr}
}

// lameDuck is how long a proxy that was asked to end goes on accepting: until
// speakers and kube-proxies have heard that its pod terminates. Without a pod there
// is nothing to hear, and who pressed Ctrl-C waits for nobody.
func lameDuck(grace time.Duration) time.Duration {
	if os.Getenv(apiHost) == "" {
		return 0
	}
	return min(5*time.Second, grace/2)
}

// proxiesIn counts the proxies of a namespace, which are the endpoints of their own Service,
// and of others of the chart: EndpointSlices have the labels of their Service. Each has an
// address of every family that the cluster has.
func proxiesIn(c *snapshot.Cluster, namespace string) (n int) {
	addresses := map[discoveryv1.AddressType]map[string]struct{}{}
	for key, s := range c.EndpointSlices.All() {
		if key.Namespace != namespace || s.Labels[componentLabel] != "proxy" {
			continue
		}
		of := addresses[s.AddressType]
		if of == nil {
			of = map[string]struct{}{}
			addresses[s.AddressType] = of
		}
		for _, e := range s.Endpoints {
			for _, a := range e.Addresses {
				of[a] = struct{}{}
			}
		}
		n = max(n, len(of))
	}
	return n
}

func (e *env) proxyCommand() *cobra.Command {
	var f proxyFlags
	var access accessFlag
	var admin adminFlags
	var lastKnown lastKnownFlags
	var workload workloadFlag
	c := &cobra.Command{
		Use: "proxy", Short: "Serve Ingresses: the HTTP data plane", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return e.runProxy(c.Context(), f, access, admin, lastKnown, workload)
		},
	}
	f.add(c.Flags(), detailMinimal)
	access.add(c.Flags())
	admin.add(c.Flags())
	lastKnown.add(c.Flags())
	workload.add(c.Flags())
	return c
}

// grantPatience is how long a proxy waits at its start for the right to read what
// Ingresses name: until the controller has heard of it and granted it. So long a speaker
// uses a password of its former life that it may not read yet.
const grantPatience = 10 * time.Second

func (e *env) runProxy(ctx context.Context, f proxyFlags, access accessFlag, admin adminFlags, known lastKnownFlags, workload workloadFlag) error {
	lastKnown, err := known.options()
	if err := cmp.Or(err, access.check(), admin.check()); err != nil {
		return err
	}
	patience := grantPatience
	if access.level == accessCluster {
		patience = 0
	}
	p, err := e.process()
	if err != nil {
		return err
	}
	api, err := cluster.NewAPI(cluster.APIOptions{
		Kubeconfig: e.kubeconfig, Component: "proxy", Log: p.log, Registerer: p.registry,
		WatchNamespace: f.ingress.watchNamespace, Kinds: proxy.Kinds(),
		Referenced: []snapshot.Kind{snapshot.Secret, snapshot.ConfigMap, snapshot.Node}, ByName: access.byName(f.namespace), Patience: patience,
		SpeakerStatus: f.nodeName, // a thousand others change all the time
		Optional:      []snapshot.Kind{snapshot.SpeakerStatus},
		LastKnown:     lastKnown,
		Workload:      workload.Workload,
		Fleet:         func(c *snapshot.Cluster) int { return proxiesIn(c, f.namespace) },
	})
	if err != nil {
		return err
	}
	options, err := f.options(api.Source, p, e.stdout)
	if err != nil {
		return err
	}
	front, err := proxy.New(options)
	if err != nil {
		return err
	}
	return p.run(ctx, front, front.State, admin.protect(p, api)...)
}

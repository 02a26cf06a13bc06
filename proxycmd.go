package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"quayside.io/controller/cluster"
	"quayside.io/controller/snapshot"
	"quayside.io/proxy"
)

// proxyFlags are the flags of `proxy`, which `up` has too.
type proxyFlags struct {
	nodeName, namespace, http, https       string
	ingressClass, watchNamespace, fallback string
	adopt, trusted                         []string
	proxyProtocol                          bool
	grace                                  time.Duration
}

func (f *proxyFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.nodeName, "node-name", hostName(), "node that this proxy runs on; Services of Local policy are reached through its endpoints only")
	flags.StringVar(&f.namespace, "namespace", "quayside-system", "namespace of our own objects")
	flags.StringVar(&f.http, "http", ":8080", "address to serve HTTP on; empty: not at all")
	flags.StringVar(&f.https, "https", ":8443", "address to serve HTTPS on; empty: not at all")
	flags.StringVar(&f.ingressClass, "ingress-class", "quayside", "name of our IngressClass, and value of the old annotation kubernetes.io/ingress.class")
	flags.StringArrayVar(&f.adopt, "adopt-ingress-controller", nil, "also serve IngressClasses of this controller, with its quirks (repeatable), such as k8s.io/ingress-nginx")
	flags.StringVar(&f.watchNamespace, "watch-namespace", "", "serve the Ingresses of one namespace only")
	flags.StringVar(&f.fallback, "default-ssl-certificate", "", "NAMESPACE/NAME of the TLS Secret for hosts without one")
	flags.StringSliceVar(&f.trusted, "trusted-proxies", nil, "CIDRs of proxies in front of this one, whose X-Forwarded-* is believed")
	flags.BoolVar(&f.proxyProtocol, "proxy-protocol", false, "expect the PROXY protocol, v1 or v2, from trusted proxies")
	flags.DurationVar(&f.grace, "grace-period", 30*time.Second, "time that open requests get at the end")
}

// options turns the flags into those of the hall.
func (f *proxyFlags) options(source *cluster.Source, o *outfit) (proxy.Options, error) {
	fallback, err := key("default-ssl-certificate", f.fallback, f.namespace)
	if err != nil {
		return proxy.Options{}, err
	}
	var trusted []netip.Prefix
	for _, cidr := range f.trusted {
		prefix, err := netip.ParsePrefix(cidr)
		if err != nil {
			return proxy.Options{}, fmt.Errorf("%w: --trusted-proxies: %w", errBadInput, err)
		}
		trusted = append(trusted, prefix)
	}
	return proxy.Options{
		Source: source, NodeName: f.nodeName, HTTP: f.http, HTTPS: f.https,
		IngressClass: f.ingressClass, AdoptControllers: f.adopt, WatchNamespace: f.watchNamespace, DefaultCertificate: fallback,
		TrustedProxies: trusted, ProxyProtocol: f.proxyProtocol, GracePeriod: f.grace, LameDuck: lameDuck(f.grace),
		Log: o.log.With("hall", "proxy"), Registerer: o.registry,
	}, nil
}

// lameDuck is how long a proxy that was asked to end goes on accepting: until
// speakers and kube-proxies have heard that its pod terminates.
func lameDuck(grace time.Duration) time.Duration { return min(5*time.Second, grace/2) }

func (e *env) proxyCommand() *cobra.Command {
	var f proxyFlags
	c := &cobra.Command{
		Use: "proxy", Short: "Serve Ingresses: the HTTP data plane", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return e.runProxy(c.Context(), f) },
	}
	f.add(c.Flags())
	return c
}

func (e *env) runProxy(ctx context.Context, f proxyFlags) error {
	o, err := e.outfit()
	if err != nil {
		return err
	}
	api, err := cluster.NewAPI(cluster.APIOptions{
		Kubeconfig: e.kubeconfig, Component: "proxy", Log: o.log, Registerer: o.registry,
		WatchNamespace: f.watchNamespace, SecretType: corev1.SecretTypeTLS,
		Kinds: []snapshot.Kind{
			snapshot.Service, snapshot.EndpointSlice, snapshot.Ingress, snapshot.IngressClass, snapshot.Secret, snapshot.Node, snapshot.SpeakerStatus,
		},
		SpeakerStatus: f.nodeName, // a thousand others change all the time
		Optional:      []snapshot.Kind{snapshot.SpeakerStatus},
	})
	if err != nil {
		return err
	}
	options, err := f.options(api.Source, o)
	if err != nil {
		return err
	}
	hall, err := proxy.New(options)
	if err != nil {
		return err
	}
	o.admin.Ready(hall.Ready)
	o.admin.State(func() any { return hall.State() })
	return serveUntilDrained(ctx, hall.Run, api.Run, o.admin.Run)
}

// serveUntilDrained runs hall, and keeps what it stands on alive until hall has
// returned: a proxy that drains still follows its endpoints and answers probes.
func serveUntilDrained(ctx context.Context, hall task, beneath ...task) error {
	below, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	tasks := []task{func(below context.Context) error {
		defer stop()
		top, cancel := context.WithCancel(below)
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		return hall(top)
	}}
	return serveAll(below, append(tasks, beneath...)...)
}

func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return name
}

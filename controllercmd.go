package main

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"quayside.io/controller"
	"quayside.io/controller/assign"
	"quayside.io/controller/cluster"
	"quayside.io/proxy/route"
	"quayside.io/speaker/announce"
)

// controllerFlags are the flags of `controller`.
type controllerFlags struct {
	leaderElect, byDefault   bool
	lease                    time.Duration
	namespace, class         string
	ingressClass             string
	watchNamespace, fallback string
	ignoreExcludeLB          bool
	externalIPs              bool
	adopt, publishAddress    []string
	publishService           string
}

func (f *controllerFlags) add(flags *pflag.FlagSet) {
	flags.BoolVar(&f.leaderElect, "leader-elect", false, "decide only while holding the Lease; needed with more than one replica")
	flags.DurationVar(&f.lease, "lease-duration", 15*time.Second, "how long a leader that is not heard of keeps the Lease; it gives up after two thirds of that")
	flags.StringVar(&f.namespace, "namespace", "quayside-system", "namespace of our own objects")
	flags.StringVar(&f.class, "load-balancer-class", assign.LoadBalancerClass, "spec.loadBalancerClass of the Services that are ours")
	flags.BoolVar(&f.byDefault, "default-load-balancer", true, "serve Services without a class, too")
	flags.StringVar(&f.ingressClass, "ingress-class", "quayside", "name of our IngressClass")
	flags.StringArrayVar(&f.adopt, "adopt-ingress-controller", nil, "also write the status of Ingresses of this controller's classes (repeatable)")
	flags.StringVar(&f.watchNamespace, "watch-namespace", "", "the proxies serve the Ingresses of this namespace only")
	flags.StringVar(&f.fallback, "default-ssl-certificate", "", "NAMESPACE/NAME of the TLS Secret that the proxies use for hosts without one")
	flags.BoolVar(&f.ignoreExcludeLB, "ignore-exclude-lb", false, "the speakers announce also from nodes labelled node.kubernetes.io/exclude-from-external-load-balancers")
	flags.BoolVar(&f.externalIPs, "external-ips", false, "the speakers announce also the addresses in spec.externalIPs of Services that lie in a pool")
	flags.StringVar(&f.publishService, "publish-service", "", "NAMESPACE/NAME of the Service whose addresses go into the status of Ingresses")
	flags.StringArrayVar(&f.publishAddress, "publish-address", nil, "IP to write into the status of Ingresses instead (repeatable)")
}

func (f *controllerFlags) assignOptions() (assign.Options, error) {
	service, err := key("publish-service", f.publishService, f.namespace)
	if err != nil {
		return assign.Options{}, err
	}
	o := assign.Options{
		LoadBalancerClass: f.class, DefaultLoadBalancer: f.byDefault,
		IngressClass: f.ingressClass, AdoptIngressControllers: f.adopt, PublishService: service,
		WatchNamespace: f.watchNamespace, ExternalIPs: f.externalIPs,
	}
	for _, text := range f.publishAddress {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			return o, fmt.Errorf("%w: --publish-address: %w", errBadInput, err)
		}
		o.PublishAddresses = append(o.PublishAddresses, ip)
	}
	return o, nil
}

func (e *env) controllerCommand() *cobra.Command {
	var f controllerFlags
	c := &cobra.Command{
		Use: "controller", Short: "Give Services addresses and write statuses", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return e.runController(c.Context(), f) },
	}
	f.add(c.Flags())
	return c
}

// Names of our own objects in --namespace.
const (
	leaseName     = "quayside-controller"
	membersSecret = "quayside-members"
	membersKey    = "key"
)

func (e *env) runController(ctx context.Context, f controllerFlags) error {
	options, err := f.assignOptions()
	if err != nil {
		return err
	}
	if f.lease < time.Second {
		return fmt.Errorf("%w: --lease-duration %s: want 1s or more", errBadInput, f.lease)
	}
	fallback, err := key("default-ssl-certificate", f.fallback, f.namespace)
	if err != nil {
		return err
	}
	o, err := e.outfit()
	if err != nil {
		return err
	}
	api, err := cluster.NewAPI(cluster.APIOptions{
		Kubeconfig: e.kubeconfig, Component: "controller", Log: o.log, Registerer: o.registry,
		Kinds: controller.Kinds(), SecretType: corev1.SecretTypeTLS, SecretNamespace: f.watchNamespace,
	})
	if err != nil {
		return err
	}
	hallOptions := controller.Options{
		Source: api.Source, Writer: api, Assign: options,
		Announce: &announce.Options{IgnoreExcludeLabel: f.ignoreExcludeLB, ExternalIPs: f.externalIPs},
		Routes: &route.Options{
			IngressClass: f.ingressClass, AdoptControllers: f.adopt, WatchNamespace: f.watchNamespace, DefaultCertificate: fallback,
		},
		Prepare: func(ctx context.Context) error {
			return api.EnsureSecret(ctx, f.namespace, membersSecret, membersKey, controller.NewMembersKey)
		},
		Log: o.log.With("hall", "controller"), Registerer: o.registry,
	}
	if f.leaderElect {
		lease := cluster.LeaseOptions{
			Namespace: f.namespace, Name: leaseName, Identity: hostName(),
			Duration: f.lease, Renew: f.lease * 2 / 3, Retry: f.lease * 2 / 15,
		}
		hallOptions.Lead = func(ctx context.Context, run func(context.Context) error) error { return api.Lead(ctx, lease, run) }
	}
	hall, err := controller.New(hallOptions)
	if err != nil {
		return err
	}
	o.admin.Ready(hall.Ready)
	o.admin.State(hall.State)
	return serveUntilDrained(ctx, hall.Run, api.Run, o.admin.Run)
}

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
	"quayside.io/cluster/tickets"
	"quayside.io/command/explain"
	"quayside.io/controller"
	"quayside.io/controller/assign"
	"quayside.io/proxy/route"
)

// controllerFlags are the flags of `controller`.
type controllerFlags struct {
	cluster        clusterFlags
	grants         grantFlags
	admin          adminFlags
	rotateKey      time.Duration
	problems       bool
	owner          string
	leaderElect    bool
	lease          time.Duration
	publishService string
	publishHosts   string
	publishAddress []string
}

func (f *controllerFlags) add(flags *pflag.FlagSet) {
	f.cluster.add(flags)
	f.grants.add(flags)
	f.admin.add(flags)
	flags.DurationVar(&f.rotateKey, "members-key-rotation", 0, "how often the gossip key is changed, an hour or more; 0: never")
	flags.BoolVar(&f.problems, "ingress-problems", true, "keep on each Ingress what is wrong with it, as the annotation "+route.ProblemsAnnotation)
	addOwner(flags, &f.owner)
	flags.BoolVar(&f.leaderElect, "leader-elect", false, "decide only while holding the Lease; needed with more than one replica")
	flags.DurationVar(&f.lease, "lease-duration", 15*time.Second, "how long the Lease of a leader stays valid without renewal; the leader itself gives up after two thirds of that")
	flags.StringVar(&f.publishService, "publish-service", "", "NAMESPACE/NAME of the Service whose addresses go into the status of Ingresses")
	flags.StringVar(&f.publishHosts, "publish-hosts", "", "NAMESPACE/NAME of a Service that selects proxies on the network of their nodes: the addresses of these nodes go there instead")
	flags.StringArrayVar(&f.publishAddress, "publish-address", nil, "IP to write into the status of Ingresses instead (repeatable)")
}

// addOwner adds the flag of who makes objects at run time.
func addOwner(flags *pflag.FlagSet, owner *string) {
	flags.StringVar(owner, "owner", "", "ClusterRole that what is made at run time is deleted with; empty: nothing is deleted with it")
}

// assign returns what the controller decides by, and the Service of the proxies whose nodes
// are published.
func (f *controllerFlags) assign() (o assign.Options, hosts snapshot.Key, err error) {
	o = f.cluster.assign()
	if f.publishHosts != "" && (f.publishService != "" || len(f.publishAddress) > 0) {
		return o, hosts, fmt.Errorf("%w: --publish-hosts with --publish-service or --publish-address: want one of them", errBadInput)
	}
	if hosts, err = key("publish-hosts", f.publishHosts, f.cluster.namespace); err != nil {
		return o, hosts, err
	}
	if o.PublishService, err = key("publish-service", f.publishService, f.cluster.namespace); err != nil {
		return o, hosts, err
	}
	for _, text := range f.publishAddress {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			return o, hosts, fmt.Errorf("%w: --publish-address: %w", errBadInput, err)
		}
		o.PublishAddresses = append(o.PublishAddresses, ip)
	}
	return o, hosts, nil
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
	assigning, hosts, err := f.assign()
	if err != nil {
		return err
	}
	if f.rotateKey != 0 && f.rotateKey < time.Hour {
		return fmt.Errorf("%w: --members-key-rotation %s: want 1h or more, or 0", errBadInput, f.rotateKey)
	}
	if f.lease < time.Second {
		return fmt.Errorf("%w: --lease-duration %s: want 1s or more", errBadInput, f.lease)
	}
	if err := cmp.Or(f.grants.access.check(), f.admin.check()); err != nil {
		return err
	}
	routes, err := f.cluster.routes()
	if err != nil {
		return err
	}
	p, err := e.process()
	if err != nil {
		return err
	}
	api, err := cluster.NewAPI(cluster.APIOptions{
		Kubeconfig: e.kubeconfig, Component: "controller", Log: p.log, Registerer: p.registry,
		Kinds: controller.Kinds(), Referenced: []snapshot.Kind{snapshot.Secret, snapshot.ConfigMap}, Owner: f.owner,
	})
	if err != nil {
		return err
	}
	grants, err := f.grants.grants(api, f.cluster)
	if err != nil {
		return err
	}
	announcing := f.cluster.announce()
	ensureMembersKey := func(ctx context.Context) error {
		return api.EnsureSecret(ctx, f.cluster.namespace, membersSecret, membersKey, controller.NewMembersKey)
	}
	options := controller.Options{
		Source: api.Source, Writer: api, Assign: assigning, PublishHosts: hosts, Announce: &announcing, Routes: &routes,
		Prepare: func(ctx context.Context) error {
			return errors.Join(ensureMembersKey(ctx), f.grants.takeBack(ctx, grants))
		},
		Rotate: func(ctx context.Context, now time.Time) (next time.Time, err error) {
			err = api.KeepSecret(ctx, f.cluster.namespace, tickets.Name, func(data map[string][]byte) (want map[string][]byte) {
				want, next = tickets.Rotate(data, now, controller.NewTicketKey)
				return want
			})
			return next, err
		},
		Belongings: api.Belongings(cluster.BelongingOptions{
			Namespace: f.cluster.namespace, Secrets: []string{membersSecret, tickets.Name}, Lease: leaseName, Ensure: ensureMembersKey,
		}),
		Tend:   rotation(api, f.cluster.namespace, f.rotateKey),
		Grants: f.grants.options(grants, f.cluster), Passwords: f.grants.passwords(api, f.cluster.namespace),
		Log: p.component("controller"), Registerer: p.registry,
	}
	if f.problems {
		options.Notes = api
	}
	if f.leaderElect {
		lease := cluster.LeaseOptions{
			Namespace: f.cluster.namespace, Name: leaseName, Identity: cluster.HostName(),
			Duration: f.lease, Renew: f.lease * 2 / 3, Retry: f.lease * 2 / 15,
		}
		options.Lead = func(ctx context.Context, run func(context.Context) error) error { return api.Lead(ctx, lease, run) }
	}
	control, err := controller.New(options)
	if err != nil {
		return err
	}
	p.judging(control, f.cluster)
	state := func() any {
		return struct {
			controller.State
			*explain.Report
		}{control.State(), explain.Status(explain.Inputs{Cluster: api.Snapshot(), Problems: control.Problems(), Assign: assigning, Announce: f.cluster.announce(), Now: time.Now()})}
	}
	return p.run(ctx, control, state, f.admin.protect(p, api)...)
}

package command

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
	"quayside.io/cluster/tickets"
	"quayside.io/controller"
)

// The values of --secret-access.
const (
	accessCluster    = "Cluster"
	accessNamespaced = "Namespaced"
	accessReferenced = "Referenced"
)

// accessFlag says which Secrets and ConfigMaps the proxies may read, which the
// controller sees to and the proxies count on.
type accessFlag struct{ level string }

func (f *accessFlag) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.level, "secret-access", accessCluster, "Secrets and ConfigMaps that proxies may read: Cluster: all, given elsewhere; Namespaced: those of each namespace with an Ingress; Referenced: those that Ingresses name. The last two are granted by the controller, by a Role in each namespace")
}

func (f *accessFlag) check() error {
	switch f.level {
	case accessCluster, accessNamespaced, accessReferenced:
		return nil
	}
	return fmt.Errorf("%w: --secret-access %q: want %s, %s or %s", errBadInput, f.level, accessCluster, accessNamespaced, accessReferenced)
}

// byName reports where a proxy of Quayside's namespace own may read by name only.
func (f *accessFlag) byName(own string) func(namespace string) bool {
	return func(namespace string) bool {
		return f.level == accessReferenced || f.level == accessNamespaced && namespace == own
	}
}

// grantFlags are those of the controller about what it grants to whom.
type grantFlags struct {
	access         accessFlag
	account, owner string
}

func (f *grantFlags) add(flags *pflag.FlagSet) {
	f.access.add(flags)
	flags.StringVar(&f.account, "proxy-service-account", "quayside-proxy", "[NAMESPACE/]NAME of the ServiceAccount of the proxies, for --secret-access; without NAMESPACE it is in --namespace")
	flags.StringVar(&f.owner, "grant-owner", "", "ClusterRole that what --secret-access grants is deleted with; empty: nothing is deleted with it")
}

// options returns nil where nothing is to be granted.
func (f *grantFlags) options(to *cluster.Grants, c clusterFlags) *controller.GrantOptions {
	if f.access.level == accessCluster {
		return nil
	}
	return &controller.GrantOptions{
		To: to, ByName: f.access.level == accessReferenced, Own: c.namespace,
		Never: []snapshot.Key{{Namespace: c.namespace, Name: membersSecret}, {Namespace: c.namespace, Name: tickets.Name}},
	}
}

func (f *grantFlags) grants(api *cluster.API, c clusterFlags) (*cluster.Grants, error) {
	account, err := key("proxy-service-account", f.account, c.namespace)
	if err != nil {
		return nil, err
	}
	return api.Grants(cluster.GrantOptions{
		Name: account.Name + "-references", Account: account, Owner: f.owner, Namespace: c.ingress.watchNamespace,
	}), nil
}

// takeBack sees to what was granted before the proxies could read everything.
func (f *grantFlags) takeBack(ctx context.Context, from *cluster.Grants) error {
	if f.access.level != accessCluster {
		return nil
	}
	return from.TakeBack(ctx)
}

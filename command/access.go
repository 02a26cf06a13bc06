package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

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
func (f *accessFlag) byName(own string) func(snapshot.Kind, string) bool {
	return func(_ snapshot.Kind, namespace string) bool {
		return f.level == accessReferenced || f.level == accessNamespaced && namespace == own
	}
}

// grantFlags are those of the controller about what it grants to whom.
type grantFlags struct {
	access         accessFlag
	account, owner string
	secrets        []string
	speakers       string
	speakersOwner  string
}

func (f *grantFlags) add(flags *pflag.FlagSet) {
	f.access.add(flags)
	flags.StringVar(&f.account, "proxy-service-account", "quayside-proxy", "[NAMESPACE/]NAME of the ServiceAccount of the proxies, for --secret-access; without NAMESPACE it is in --namespace")
	flags.StringArrayVar(&f.secrets, "own-secret", nil, "Secret of --namespace that is given to no proxy though an Ingress names it, and to no speaker, beside "+membersSecret+", "+tickets.Name+" and the releases of Helm (repeatable)")
	flags.StringVar(&f.owner, "grant-owner", "", "ClusterRole that what --secret-access grants is deleted with, and called after; empty: nothing is deleted with it, and it is called after the account")
	flags.StringVar(&f.speakers, "speaker-service-account", "", "ServiceAccount of the speakers in --namespace, to which the controller gives the Secrets there that BGPPeers name as passwordSecret; empty: they are given elsewhere")
	flags.StringVar(&f.speakersOwner, "speaker-grant-owner", "", "ClusterRole that what is granted to the speakers is deleted with, and called after, as with --grant-owner")
}

// options returns nil where nothing is to be granted.
func (f *grantFlags) options(to *cluster.Grants, c clusterFlags) *controller.GrantOptions {
	if f.access.level == accessCluster {
		return nil
	}
	return &controller.GrantOptions{
		To: to, ByName: f.access.level == accessReferenced, Own: c.namespace, Never: f.never(c.namespace),
	}
}

// helmReleases begins the names of the Secrets in which Helm keeps what it was given for a
// release, passwords among it. Nothing can have a use for one, in any namespace.
const helmReleases = "sh.helm.release.v1."

// never says of a Secret that no Ingress or BGPPeer can ask for it.
func (f *grantFlags) never(own string) func(snapshot.Key) bool {
	names := append([]string{membersSecret, tickets.Name}, f.secrets...)
	return func(secret snapshot.Key) bool {
		return strings.HasPrefix(secret.Name, helmReleases) || secret.Namespace == own && slices.Contains(names, secret.Name)
	}
}

// The account may be given another name; then what the one before got is found by that of
// its ClusterRole, with this behind it.
const referencesSuffix = "-references"

// grants are those of the proxies.
func (f *grantFlags) grants(api *cluster.API, c clusterFlags) (*cluster.Grants, error) {
	account, err := key("proxy-service-account", f.account, c.namespace)
	if err != nil {
		return nil, err
	}
	return api.Grants(cluster.GrantOptions{
		Name: cmp.Or(f.owner, account.Name) + referencesSuffix, Former: account.Name + referencesSuffix, Account: account, Owner: f.owner,
	}), nil
}

// passwords returns nil where the speakers are given nothing.
func (f *grantFlags) passwords(api *cluster.API, own string) *controller.PasswordOptions {
	if f.speakers == "" {
		return nil
	}
	return &controller.PasswordOptions{
		To: api.Grants(cluster.GrantOptions{
			Name: cmp.Or(f.speakersOwner, f.speakers) + referencesSuffix, Namespace: own,
			Account: snapshot.Key{Namespace: own, Name: f.speakers}, Owner: f.speakersOwner,
		}),
		Namespace: own, Never: f.never(own),
	}
}

// takeBack sees to what was granted before the proxies could read everything.
func (f *grantFlags) takeBack(ctx context.Context, from *cluster.Grants) error {
	if f.access.level != accessCluster {
		return nil
	}
	return from.TakeBack(ctx)
}

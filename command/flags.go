package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"

	"quayside.io/cluster"
	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
	"quayside.io/controller/assign"
	"quayside.io/proxy/filter"
	"quayside.io/proxy/geoip"
	"quayside.io/proxy/route"
	"quayside.io/speaker/announce"
)

// ingressFlags say which Ingresses are served. The proxy serves by them; the
// controller, `status` and `trace` must know them to judge an Ingress as it does.
type ingressFlags struct {
	class, watchNamespace, defaultCertificate, configMap, ownership, defaultBackend string
	watchSelector                                                                   selectorFlag
	allowCatchAll, passthrough, noExternalName, modSecurity                         bool
	adopt, adoptNames, editions                                                     []string
}

func (f *ingressFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.class, "ingress-class", ingressclass.DefaultName, "name of our IngressClass, and value of the old annotation kubernetes.io/ingress.class")
	flags.StringArrayVar(&f.adopt, "adopt-ingress-controller", nil, "also serve IngressClasses of this controller, with its quirks (repeatable), such as k8s.io/ingress-nginx")
	flags.StringArrayVar(&f.adoptNames, "adopt-ingress-class", nil, "also serve Ingresses of this class as ingress-nginx does while there is no IngressClass of that name (repeatable): its chart takes its own away when it is uninstalled")
	flags.StringVar(&f.watchNamespace, "watch-namespace", "", "serve the Ingresses of this namespace only; empty: of all")
	flags.Var(&f.watchSelector, "watch-namespace-selector", "serve the Ingresses of namespaces whose labels match only, as they come and go; it excludes --watch-namespace")
	flags.StringVar(&f.defaultCertificate, "default-ssl-certificate", "", "NAMESPACE/NAME of the TLS Secret for hosts without one")
	flags.StringVar(&f.configMap, "configmap", "", "NAMESPACE/NAME of the ConfigMap with proxy-wide options in the names of ingress-nginx")
	flags.StringVar(&f.defaultBackend, "default-backend-service", "", "NAMESPACE/NAME of the Service that is asked what no rule is for, and that answers with pages for the statuses of custom-http-errors where an Ingress names none")
	flags.StringVar(&f.ownership, "host-ownership", ownedByAll, "Shared: Ingresses of any namespace may add paths to a host, the older ones win; FirstNamespace: only those of the namespace that named it first")
	flags.BoolVar(&f.passthrough, "enable-ssl-passthrough", true, "obey the annotation ssl-passthrough; false: the routes of Ingresses that ask for it are closed")
	flags.BoolVar(&f.noExternalName, "disable-svc-external-name", false, "close routes to Services of type ExternalName, which lead out of the cluster, and locations of snippets that lead there or to other namespaces")
	flags.BoolVar(&f.allowCatchAll, "allow-catch-all", true, "rules without host and default backends get what the rules of a host of another namespace leave over")
	flags.BoolVar(&f.modSecurity, "modsecurity", false, "let Ingresses ask for a web application firewall (enable-modsecurity), see docs/ingress-nginx.md for its cost; else their routes are closed")
	flags.StringSliceVar(&f.editions, "maxmind-edition-ids", nil, "databases that say where clients are, by names of MaxMind's such as GeoLite2-Country, for variables such as $geoip2_country_code; proxies find the file of each, such as GeoLite2-Country.mmdb, in --geoip-dir")
}

func (f *ingressFlags) classes() ingressclass.Rules {
	return ingressclass.Rules{Name: f.class, Adopt: f.adopt, AdoptNames: f.adoptNames, Namespace: f.watchNamespace, Namespaces: f.watchSelector.selector}
}

// selectorFlag is a selector of labels, nil where an empty one or none is given.
type selectorFlag struct{ selector labels.Selector }

// String implements pflag.Value.
func (f *selectorFlag) String() string {
	if f.selector == nil {
		return ""
	}
	return f.selector.String()
}

// Set implements pflag.Value.
func (f *selectorFlag) Set(text string) error {
	selector, err := labels.Parse(text)
	if err != nil {
		return err
	}
	if f.selector = selector; selector.Empty() {
		f.selector = nil
	}
	return nil
}

// Type implements pflag.Value.
func (f *selectorFlag) Type() string { return "selector" }

// The values of --host-ownership.
const (
	ownedByAll   = "Shared"
	ownedByFirst = "FirstNamespace"
)

// routes turns the flags into the options of the routing table. An object named
// without a namespace is in namespace.
func (f *ingressFlags) routes(namespace string) (route.Options, error) {
	certificate, err := key("default-ssl-certificate", f.defaultCertificate, namespace)
	if err != nil {
		return route.Options{}, err
	}
	configMap, err := key("configmap", f.configMap, namespace)
	if err != nil {
		return route.Options{}, err
	}
	backend, err := key("default-backend-service", f.defaultBackend, namespace)
	if f.ownership != ownedByAll && f.ownership != ownedByFirst {
		err = errors.Join(err, fmt.Errorf("%w: --host-ownership %q: want %s or %s", errBadInput, f.ownership, ownedByAll, ownedByFirst))
	}
	if f.watchNamespace != "" && f.watchSelector.selector != nil {
		err = errors.Join(err, fmt.Errorf("%w: --watch-namespace and --watch-namespace-selector exclude each other: give one of them", errBadInput))
	}
	var places filter.Places
	if len(f.editions) > 0 {
		if databases, wrong := geoip.New(f.editions); wrong != nil {
			err = errors.Join(err, fmt.Errorf("%w: --maxmind-edition-ids: %w", errBadInput, wrong))
		} else {
			places = databases
		}
	}
	return route.Options{
		Places:  places,
		Classes: f.classes(), DefaultCertificate: certificate, ConfigMap: configMap, DefaultBackend: backend,
		FirstNamespace: f.ownership == ownedByFirst, NoCatchAll: !f.allowCatchAll, NoPassthrough: !f.passthrough, NoExternalName: f.noExternalName, ModSecurity: f.modSecurity,
	}, err
}

// clusterFlags say which objects are ours. The controller decides by them.
// `status` and `trace` work its decisions out again, and so take the same flags.
type clusterFlags struct {
	ingress           ingressFlags
	namespace         string
	loadBalancerClass string
	serveClassless    bool // Services without a class are ours, too
	externalIPs       bool
	ignoreExcludeLB   bool
}

func (f *clusterFlags) add(flags *pflag.FlagSet) {
	f.ingress.add(flags)
	addNamespace(flags, &f.namespace)
	flags.StringVar(&f.loadBalancerClass, "load-balancer-class", loadbalancer.Class, "spec.loadBalancerClass of the Services that are ours")
	flags.BoolVar(&f.serveClassless, "default-load-balancer", true, "serve Services without a class, too")
	addAnnounceFlags(flags, &f.externalIPs, &f.ignoreExcludeLB)
}

func (f *clusterFlags) assign() assign.Options {
	return assign.Options{
		LoadBalancerClass: f.loadBalancerClass, DefaultLoadBalancer: f.serveClassless, ExternalIPs: f.externalIPs,
		Classes: f.ingress.classes(),
	}
}

func (f *clusterFlags) announce() announce.Options {
	return announce.Options{IgnoreExcludeLabel: f.ignoreExcludeLB, ExternalIPs: f.externalIPs, Namespace: f.namespace}
}

func (f *clusterFlags) routes() (route.Options, error) { return f.ingress.routes(f.namespace) }

func addNamespace(flags *pflag.FlagSet, namespace *string) {
	flags.StringVar(namespace, "namespace", "quayside-system", "namespace that Quayside is installed in")
}

// workloadFlag names what runs this process and others of its kind.
type workloadFlag struct{ cluster.Workload }

func (f *workloadFlag) add(flags *pflag.FlagSet) {
	flags.Var(f, "workload", "DaemonSet/NAMESPACE/NAME or Deployment/NAMESPACE/NAME that runs this process: where its status says that many start at the same time, they ask the API server one after the other; empty: all at once")
}

// String implements pflag.Value.
func (f *workloadFlag) String() string {
	if f.Workload == (cluster.Workload{}) {
		return ""
	}
	return f.Kind + "/" + f.Namespace + "/" + f.Name
}

// Set implements pflag.Value.
func (f *workloadFlag) Set(text string) (err error) {
	f.Workload, err = cluster.ParseWorkload(text)
	return err
}

// Type implements pflag.Value.
func (f *workloadFlag) Type() string { return "workload" }

func addNodeName(flags *pflag.FlagSet, node *string, what string) {
	flags.StringVar(node, "node-name", cluster.HostName(), what)
}

// addAnnounceFlags adds the flags that speakers and whoever judges them share.
func addAnnounceFlags(flags *pflag.FlagSet, externalIPs, ignoreExcludeLB *bool) {
	flags.BoolVar(externalIPs, "external-ips", false, "speakers also announce the addresses in spec.externalIPs of Services that lie in a pool")
	flags.BoolVar(ignoreExcludeLB, "ignore-exclude-lb", false, "nodes labelled node.kubernetes.io/exclude-from-external-load-balancers announce, too")
}

// key parses NAMESPACE/NAME; a name alone is in namespace.
func key(flag, value, namespace string) (snapshot.Key, error) {
	if value == "" {
		return snapshot.Key{}, nil
	}
	ns, name, found := strings.Cut(value, "/")
	if !found {
		ns, name = namespace, value
	}
	if ns == "" || name == "" || strings.Contains(name, "/") {
		return snapshot.Key{}, fmt.Errorf("%w: --%s %q: want NAMESPACE/NAME", errBadInput, flag, value)
	}
	return snapshot.Key{Namespace: ns, Name: name}, nil
}

package chart

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// values reads a piece of YAML as somebody's values.yaml.
func values(t *testing.T, text string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := yaml.UnmarshalStrict([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// render returns the objects of an installation named edge in quayside-system.
func renderObjects(t *testing.T, v map[string]any) []*unstructured.Unstructured {
	t.Helper()
	_, objects, err := Render("edge", "quayside-system", v)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// rendered returns the objects of built-in kinds, decoded strictly.
func rendered(t *testing.T, v map[string]any) []runtime.Object {
	t.Helper()
	var builtin []*unstructured.Unstructured
	for _, object := range renderObjects(t, v) {
		if group := object.GroupVersionKind().Group; group != "monitoring.coreos.com" && group != "quayside.io" && group != "apiextensions.k8s.io" {
			builtin = append(builtin, object)
		}
	}
	typed, err := Typed(builtin...)
	if err != nil {
		t.Fatal(err)
	}
	return typed
}

// variants are values that people set, each reaching templates that the
// defaults leave out.
func variants() map[string]string {
	return map[string]string{
		"defaults":     ``,
		"addresses":    `{proxy: {enabled: false}, controller: {publishAddresses: [192.0.2.1, 192.0.2.2]}}`,
		"ingress only": `{speaker: {enabled: false}, loadBalancer: {default: false}}`,
		"monitoring":   `{metrics: {serviceMonitor: {enabled: true, labels: {release: prom}, relabelings: [{action: labelmap, regex: a}]}, dashboards: {enabled: true}, prometheusRule: {enabled: true, additionalRules: [{alert: Mine, expr: vector(1)}]}}}`,
		"pods alone":   `{metrics: {enabled: false, podMonitor: {enabled: true}}, controller: {podDisruptionBudget: {enabled: false}}}`,
		"managed CRDs": `{crds: {manage: true}}`,
		"open ports":   `{adminAuth: None}`,
		"loopback":     `{adminAuth: Loopback}`,
		"one place":    `{proxy: {namespace: {name: quayside-system}}}`,
		"given place":  `{proxy: {namespace: {name: quayside-proxy, create: false, labels: {a: b}}}}`,
		"certificate":  `{adminTLS: {existingSecret: admin-tls}, metrics: {readers: [{namespace: monitoring, name: prometheus}], podMonitor: {enabled: true, tlsConfig: {serverName: quayside}}, tokenSecret: mine}}`,
		"policies":     `{networkPolicy: {enabled: true, metricsFrom: [{namespaceSelector: {}}]}, commonLabels: {team: edge}}`,
		"host network": `{proxy: {kind: DaemonSet, hostNetwork: {enabled: true}, ports: {http: 80, https: 443}, service: {enabled: false}}, controller: {publishAddresses: [192.0.2.1]}}`,
		"options":      `{proxy: {config: {hsts-max-age: "86400", hide-headers: "X-Powered-By,Server"}}}`,
		"firewall":     `{proxy: {modsecurity: true}}`,
		"geoip":        `{proxy: {geoip: {editions: [GeoLite2-Country, GeoLite2-ASN], volume: {emptyDir: {sizeLimit: 200Mi}}, dir: /geo}}}`,
		"autoscaling":  `{proxy: {autoscaling: {enabled: true, behavior: {scaleDown: {stabilizationWindowSeconds: 60}}}}}`,
		"by label":     `{proxy: {watchNamespaceSelector: "edge in (public, dmz),!paused"}}`,
		"large":        `{metrics: {hosts: 2000000}, speaker: {watchNodesUpTo: 1000000}, proxy: {bodyFiles: {size: 10737418240}}}`,
		"own log":      `{proxy: {accessLog: {format: '{"from": "$remote_addr", "status": $status} # $uri'}}}`,
		"labels": `
commonLabels: {app.kubernetes.io/part-of: platform, app.kubernetes.io/name: edge, team: edge}
ingressClass: {default: true, annotations: {ingressclass.kubernetes.io/is-default-class: "true"}}
proxy:
  podLabels: {team: web, app.kubernetes.io/component: front}
  namespace: {labels: {pod-security.kubernetes.io/enforce: baseline, team: web}}
  service: {labels: {team: web, app.kubernetes.io/component: front}}
metrics:
  serviceMonitor: {enabled: true, labels: {app.kubernetes.io/part-of: prometheus}}
  prometheusRule: {enabled: true, labels: {app.kubernetes.io/part-of: prometheus}}
  dashboards: {enabled: true, labels: {team: web}}
`,
		"everything": `
fullnameOverride: ""
nameOverride: edge
image: {digest: "sha256:0123456789012345678901234567890123456789012345678901234567890123", pullSecrets: [{name: pull}]}
log: {level: debug, format: text}
loadBalancer: {externalIPs: true}
ingressClass: {default: true, annotations: {a: b}, adoptControllers: [k8s.io/ingress-nginx], adoptNames: [public], hostOwnership: FirstNamespace, allowCatchAll: false, sslPassthrough: false, externalNames: false}
metrics: {serviceMonitor: {enabled: true}, podMonitor: {enabled: true}, dashboards: {enabled: true}, prometheusRule: {enabled: true}}
pools: [{name: lan, addresses: [192.0.2.0/24]}]
peers: [{name: tor, myASN: 64500, peerASN: 64501, peerAddress: 192.0.2.1, bfdProfile: quick}]
l2Advertisements: [{name: lan, ipAddressPools: [lan]}]
bgpAdvertisements: [{name: lan, ipAddressPools: [lan], peers: [tor], communities: ["64500:7"]}]
bfdProfiles: [{name: quick, receiveInterval: 100, transmitInterval: 100}]
communities: [{name: ours, communities: [{name: seven, value: "64500:7"}]}]
controller: {replicas: 1, publishService: a/b, extraArgs: ["--help"], extraEnv: [{name: A, value: b}], podAnnotations: {a: b}, podLabels: {c: d}}
speaker: {profile: fast, bgp: {listen: ":179"}, ignoreExcludeLB: true, handOverOnCordon: true, kubeProxyMetrics: "", members: {port: 17946, existingSecret: mine}, serviceAccount: {name: mine, annotations: {a: b}}}
proxy:
  watchNamespace: shop
  defaultSSLCertificate: shop/tls
  defaultBackendService: shop/pages
  configMap: quayside-system/mine
  trustedProxies: [10.0.0.0/8, "fc00::/7"]
  proxyProtocol: true
  http2: false
  h2c: true
  accessLog: {format: json, fields: [status, request_time], share: 0.5}
  topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]
  tolerations: [{operator: Exists}]
  affinity: {nodeAffinity: {}}
  updateStrategy: {type: Recreate}
  hostPorts: {http: 80, https: 443}
  internalService:
    enabled: true
    type: LoadBalancer
    addressPool: inside
  service:
    loadBalancerIPs: [192.0.2.7, "fc00::7"]
    addressPool: first
    loadBalancerSourceRanges: [10.0.0.0/8]
    externalIPs: [192.0.2.9]
    ipFamilyPolicy: PreferDualStack
    ipFamilies: [IPv4, IPv6]
    nodePorts: {http: 30080, https: 30443}
    allocateLoadBalancerNodePorts: false
    annotations: {a: b}
    labels: {c: d}
`,
	}
}

// TestRender: every variant renders to objects that decode strictly, that
// carry the labels one finds them by, and that live where they should.
func TestRender(t *testing.T) {
	for name, text := range variants() {
		t.Run(name, func(t *testing.T) {
			rendered(t, values(t, text)) // strict
			seen, apart := map[string]bool{}, "quayside-proxy"
			if name == "everything" { // its objects have another name
				apart = "edge-proxy"
			}
			for _, object := range renderObjects(t, values(t, text)) {
				id := object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
				if seen[id] {
					t.Errorf("%s is rendered twice", id)
				}
				seen[id] = true
				labels := object.GetLabels()
				if labels["app.kubernetes.io/instance"] != "edge" || labels["app.kubernetes.io/component"] == "" {
					t.Errorf("%s has labels %v", id, labels)
				}
				if namespace := object.GetNamespace(); namespace != "" && namespace != "quayside-system" && namespace != "shop" && namespace != apart {
					t.Errorf("%s is in namespace %s", id, namespace)
				}
				if object.GetKind() == "Secret" && (object.Object["type"] != "kubernetes.io/service-account-token" || object.Object["data"] != nil) {
					t.Errorf("%s: the controller makes the Secrets, a chart cannot keep one", id)
				}
			}
		})
	}
}

// TestRenderTwice: a GitOps tool that renders the chart again finds nothing new.
func TestRenderTwice(t *testing.T) {
	for name, text := range variants() {
		if diff := cmp.Diff(renderObjects(t, values(t, text)), renderObjects(t, values(t, text))); diff != "" {
			t.Errorf("%s: two renderings differ:\n%s", name, diff)
		}
	}
}

// TestCRDsComeFirst: all of ours, and none of them among the templates, where
// an uninstall would delete every pool.
func TestCRDsComeFirst(t *testing.T) {
	crds, objects, err := Render("edge", "quayside-system", nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(crds) != 7 {
		t.Errorf("%d CRDs, want 7", len(crds))
	}
	for _, object := range objects {
		if object.GetKind() == "CustomResourceDefinition" {
			t.Errorf("CRD %s is among the templates", object.GetName())
		}
	}
}

// TestValuesAreChecked: a name that does not exist, or a value that cannot be
// meant, stops the installation instead of being ignored.
func TestValuesAreChecked(t *testing.T) {
	for text, want := range map[string]string{
		`{proxi: {}}`:           "proxi",
		`{proxy: {replica: 3}}`: "replica",
		`{proxy: {service: {externalTrafficPolicy: local}}}`:                                            "externalTrafficPolicy",
		`{proxy: {ports: {http: 0}}}`:                                                                   "http",
		`{proxy: {adminPort: 8443}}`:                                                                    "proxy.adminPort and proxy.ports.https are both 8443",
		`{proxy: {ports: {http: 8443}}}`:                                                                "proxy.ports.http and proxy.ports.https are both 8443",
		`{speaker: {adminPort: 7946}}`:                                                                  "speaker.adminPort and speaker.members.port are both 7946",
		`{speaker: {members: {port: 179}, bgp: {listen: "[::]:179"}}}`:                                  "speaker.bgp.listen and speaker.members.port are both 179",
		`{proxy: {hostNetwork: {enabled: true}, adminPort: 7474}}`:                                      "proxy.adminPort and speaker.adminPort are both 7474",
		`{proxy: {autoscaling: {enabled: true, minReplicas: 5, maxReplicas: 4}}}`:                       "proxy.autoscaling.maxReplicas is 4, which is less than minReplicas, 5",
		`{proxy: {kind: StatefulSet}}`:                                                                  "kind",
		`{proxy: {defaultSSLCertificate: no-namespace}}`:                                                "defaultSSLCertificate",
		`{proxy: {defaultBackendService: no-namespace}}`:                                                "defaultBackendService",
		`{proxy: {podDisruptionBudget: {maxUnavailable: half}}}`:                                        "maxUnavailable",
		`{speaker: {profile: quick}}`:                                                                   "profile",
		`{speaker: {members: {port: "7946"}}}`:                                                          "port",
		`{controller: {replicas: 0}}`:                                                                   "replicas",
		`{controller: {extraArgs: [leader-elect]}}`:                                                     "extraArgs",
		`{ingressClass: {name: ""}}`:                                                                    "name",
		`{image: {digest: sha256:abc}}`:                                                                 "digest",
		`{metrics: {serviceMonitor: {enabled: "true"}}}`:                                                "enabled",
		`{fullnameOverride: Upper}`:                                                                     "fullnameOverride",
		`{log: {level: verbose}}`:                                                                       "level",
		`{speaker: {members: {keyRotation: 30m}}}`:                                                      "no controller starts with less than 1h",
		`{speaker: {members: {keyRotation: 30m20s}}}`:                                                   "no controller starts with less than 1h",
		`{fullnameOverride: a-name-that-is-nearly-as-long-as-it-may-ever-be}`:                           "a fullnameOverride of 44 at most",
		`{proxy: {hostNetwork: {enabled: true}, ports: {http: 80, https: 443}, hostPorts: {http: 81}}}`: "proxy.hostPorts.http is 81: in host network mode",
		`{proxy: {trustedProxies: [proxy.example.com]}}`:                                                "trustedProxies",
		`{proxy: {accessLog: {fields: [status]}}}`:                                                      "proxy.accessLog.fields are those of the format json",
		`{controller: {publishAddresses: [edge.example.com]}}`:                                          "publishAddresses",
		`{proxy: {service: {allocateLoadBalancerNodePorts: "no"}}}`:                                     "allocateLoadBalancerNodePorts",
	} {
		_, _, err := Render("edge", "quayside-system", values(t, text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("values %s: error %v, want one that names %q", text, err, want)
		}
	}
}

// TestValuesAreTaken: what lies close to what is refused.
func TestValuesAreTaken(t *testing.T) {
	for _, text := range []string{
		`{speaker: {members: {keyRotation: 720h}}}`, `{speaker: {members: {keyRotation: 1h30m}}}`, `{speaker: {members: {keyRotation: 90m}}}`, `{speaker: {members: {keyRotation: ""}}}`,
		`{speaker: {members: {keyRotation: 7200s}}}`, `{speaker: {members: {keyRotation: 0s}}}`,
		`{fullnameOverride: a-name-that-is-exactly-as-long-as-it-may-be1}`,
		`{fullnameOverride: a-name-that-is-nearly-as-long-as-it-may-ever-be, metrics: {enabled: false}}`,
		`{proxy: {hostNetwork: {enabled: true}, ports: {http: 80, https: 443}, hostPorts: {http: 80}}}`,
		`{proxy: {adminPort: 7474}, controller: {adminPort: 7946}}`, // of pods with networks of their own
		`{proxy: {hostNetwork: {enabled: true}, adminPort: 7474}, speaker: {enabled: false}}`,
		`{proxy: {enabled: false, adminPort: 8443}}`,
		`{proxy: {trustedProxies: [10.0.0.1, "fd00::/8"]}, controller: {publishAddresses: ["fd00::1"]}}`,
	} {
		if _, _, err := Render("edge", "quayside-system", values(t, text)); err != nil {
			t.Errorf("values %s: %v", text, err)
		}
	}
}

// TestProxyService: the Service keeps the client's address, finds the proxy's
// ports by name, and asks for what the values ask for.
func TestProxyService(t *testing.T) {
	service := find[*corev1.Service](t, rendered(t, nil), "quayside-proxy")
	if service.Spec.Type != corev1.ServiceTypeLoadBalancer || service.Spec.ExternalTrafficPolicy != corev1.ServiceExternalTrafficPolicyLocal {
		t.Errorf("type %s, externalTrafficPolicy %s", service.Spec.Type, service.Spec.ExternalTrafficPolicy)
	}
	if len(service.Annotations) > 0 {
		t.Errorf("asks by annotations for %v", service.Annotations)
	}
	ports := map[int32]string{}
	for _, port := range service.Spec.Ports {
		ports[port.Port] = port.TargetPort.String()
	}
	if diff := cmp.Diff(map[int32]string{80: "http", 443: "https"}, ports); diff != "" {
		t.Error(diff)
	}

	service = find[*corev1.Service](t, rendered(t, values(t, variants()["everything"])), "edge-proxy")
	want := map[string]string{"a": "b", "quayside.io/address-pool": "first", "quayside.io/loadBalancerIPs": "192.0.2.7,fc00::7"}
	if diff := cmp.Diff(want, service.Annotations); diff != "" {
		t.Error(diff)
	}

	// The server refuses another class for a Service that is there: who moves
	// here from another load balancer turns loadBalancer.default on by an upgrade.
	for text, want := range map[string]string{
		`{loadBalancer: {default: true}}`:                                        "quayside.io/lb",
		`{loadBalancer: {default: false}}`:                                       "quayside.io/lb",
		`{loadBalancer: {class: example.com/edge}}`:                              "example.com/edge",
		`{proxy: {service: {loadBalancerClass: example.com/other}}}`:             "example.com/other",
		`{proxy: {service: {type: NodePort, loadBalancerClass: not.used/here}}}`: "",
	} {
		service = find[*corev1.Service](t, rendered(t, values(t, text)), "quayside-proxy")
		got := ""
		if service.Spec.LoadBalancerClass != nil {
			got = *service.Spec.LoadBalancerClass
		}
		if got != want {
			t.Errorf("values %s: class %q, want %q", text, got, want)
		}
	}
}

// TestOutOfReach: a value that could never work is refused.
func TestOutOfReach(t *testing.T) {
	for _, value := range []string{"defaultSSLCertificate", "defaultBackendService"} {
		_, _, err := Render("edge", "quayside-system", values(t, `{proxy: {watchNamespace: shop, `+value+`: other/name}}`))
		if err == nil || !strings.Contains(err.Error(), "proxy."+value+" other/name is outside proxy.watchNamespace shop") {
			t.Errorf("%s that the proxy may not read: %v", value, err)
		}
	}
}

// TestOneWayToChooseNamespaces: both at once would be neither.
func TestOneWayToChooseNamespaces(t *testing.T) {
	for _, more := range []string{``, `enabled: false, `} {
		_, _, err := Render("edge", "quayside-system", values(t, `{proxy: {`+more+`watchNamespace: shop, watchNamespaceSelector: edge=public}}`))
		if err == nil || !strings.Contains(err.Error(), "proxy.watchNamespace and proxy.watchNamespaceSelector exclude each other") {
			t.Errorf("a namespace and a selector: %v", err)
		}
	}
}

// TestTwoReleases: a second release as values.yaml describes it shares no object with the
// first, nor a ClusterRole that owns what the other makes.
func TestTwoReleases(t *testing.T) {
	names := func(release, namespace, text string) map[string]bool {
		all := map[string]bool{}
		_, objects, err := Render(release, namespace, values(t, text))
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			all[o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()] = true
		}
		return all
	}
	first := names("quayside", "quayside-system", "")
	shared := func(second map[string]bool) (both []string) {
		for name := range second {
			if first[name] {
				both = append(both, name)
			}
		}
		return both
	}
	if both := shared(names("inner", "inner", `{fullnameOverride: inner, ingressClass: {name: inner}, speaker: {enabled: false}}`)); len(both) > 0 {
		t.Errorf("both releases have %q", both)
	}
	if both := shared(names("inner", "inner", "")); len(both) == 0 {
		t.Error("without a name of its own it shares nothing, too: this test proves nothing")
	}
}

// TestGracePeriod: one that loses connections in each rollout is refused, and it is said
// why; nobody asks how long a proxy has which is not there.
func TestGracePeriod(t *testing.T) {
	for text, refused := range map[string]bool{
		`{proxy: {gracePeriodSeconds: 9}}`:                 true,
		`{proxy: {gracePeriodSeconds: 0}}`:                 true,
		`{proxy: {gracePeriodSeconds: 10}}`:                false,
		`{proxy: {gracePeriodSeconds: 0, enabled: false}}`: false,
	} {
		_, _, err := Render("edge", "quayside-system", values(t, text))
		if is := err != nil && strings.Contains(err.Error(), "with less than 10, a pod that ends stops accepting before"); is != refused || err != nil && !is {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestPodsKeepStill: a new version of the chart alone restarts no pod.
func TestPodsKeepStill(t *testing.T) {
	all, err := Workloads(renderObjects(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	for component, w := range all {
		for _, label := range []string{"helm.sh/chart", "app.kubernetes.io/version", "app.kubernetes.io/managed-by"} {
			if _, ok := w.Template.Labels[label]; ok {
				t.Errorf("pods of %s carry %s", component, label)
			}
		}
	}
}

// TestIngressClass: named quayside, ours, and the default only when asked.
func TestIngressClass(t *testing.T) {
	class := find[*networkingv1.IngressClass](t, rendered(t, nil), "quayside")
	if class.Spec.Controller != "quayside.io/ingress" || len(class.Annotations) > 0 {
		t.Errorf("controller %s, annotations %v", class.Spec.Controller, class.Annotations)
	}
	class = find[*networkingv1.IngressClass](t, rendered(t, values(t, `{ingressClass: {default: true}}`)), "quayside")
	if class.Annotations[networkingv1.AnnotationIsDefaultIngressClass] != "true" {
		t.Errorf("annotations %v", class.Annotations)
	}
}

// TestNotes: what Helm prints names the next step, and only steps that exist.
func TestNotes(t *testing.T) {
	notes, err := Notes("edge", "quayside-system", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"kind: IPAddressPool", "pod-security.kubernetes.io/enforce=privileged", "get service quayside-proxy", "quayside status"} {
		if !strings.Contains(notes, want) {
			t.Errorf("notes do not mention %q:\n%s", want, notes)
		}
	}
	notes, err = Notes("edge", "quayside-system", values(t, `{proxy: {enabled: false}, speaker: {enabled: false}}`))
	if err != nil {
		t.Fatal(err)
	}
	if beside, err := Notes("edge", "quayside-system", values(t, `{proxy: {namespace: {name: quayside-system}}}`)); err != nil ||
		!strings.Contains(beside, "--set proxy.namespace.name=quayside-proxy") {
		t.Errorf("%v; notes do not say how to move a proxy that is beside the gossip key:\n%s", err, beside)
	}
	for _, stale := range []string{"quayside-proxy", "privileged"} {
		if strings.Contains(notes, stale) {
			t.Errorf("notes mention %q though it is not there:\n%s", stale, notes)
		}
	}
}

// TestNotesOfPools: who has given pools, or advertisements, is not told to make some.
func TestNotesOfPools(t *testing.T) {
	const make, announce, given = "kind: IPAddressPool", "Without any advertisement object", "2. Addresses come from the pools of your values: lan, wan."
	for text, want := range map[string]map[string]bool{
		``: {make: true, announce: true, given: false},
		`{pools: [{name: lan, addresses: [192.0.2.0/25]}, {name: wan, addresses: [192.0.2.128/25]}]}`: {make: false, announce: true, given: true},
		`{l2Advertisements: [{name: lan}]}`: {make: true, announce: false, given: false},
		`{pools: [{name: lan, addresses: [192.0.2.0/25]}, {name: wan, addresses: [192.0.2.128/25]}], bgpAdvertisements: [{name: lan}]}`: {make: false, announce: false, given: true},
	} {
		notes, err := Notes("edge", "quayside-system", values(t, text))
		if err != nil {
			t.Fatal(err)
		}
		for part, there := range want {
			if strings.Contains(notes, part) != there {
				t.Errorf("%s: notes mention %q: %v, want %v\n%s", text, part, !there, there, notes)
			}
		}
	}
}

// TestInternalService: the same pods, under a name and an address of its own.
func TestInternalService(t *testing.T) {
	objects := rendered(t, values(t, variants()["everything"]))
	front, internal := find[*corev1.Service](t, objects, "edge-proxy"), find[*corev1.Service](t, objects, "edge-proxy-internal")
	if diff := cmp.Diff(front.Spec.Selector, internal.Spec.Selector); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"quayside.io/address-pool": "inside"}, internal.Annotations); diff != "" {
		t.Error(diff)
	}
	for _, object := range rendered(t, nil) {
		if s, ok := object.(*corev1.Service); ok && s.Name == "quayside-proxy-internal" {
			t.Error("there is an internal Service that nobody asked for")
		}
	}
}

// find returns the object of a type and name.
func find[T interface {
	runtime.Object
	GetName() string
}](t *testing.T, objects []runtime.Object, name string) T {
	t.Helper()
	for _, object := range objects {
		if o, ok := object.(T); ok && o.GetName() == name {
			return o
		}
	}
	var none T
	t.Fatalf("no %T named %s", none, name)
	return none
}

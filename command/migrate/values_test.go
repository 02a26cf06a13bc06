package migrate

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// What people have as values beside what they get; test/chart renders the latter.
func TestValuesOfCharts(t *testing.T) {
	for _, chart := range []string{IngressNginxChart, MetalLBChart} {
		in := "../../test/chart/testdata/" + chart + ".values.yaml"
		golden := strings.TrimSuffix(in, "yaml") + "out.yaml"
		text, err := os.ReadFile(in)
		if err != nil {
			t.Fatal(err)
		}
		values, err := ReadChart(chart, text)
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if err := values.WriteYAML(&got); err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Errorf("wanted\n%s\ngot\n%s", want, got.Bytes())
		}
	}
}

// becomes checks what values of a chart are here.
func becomes(t *testing.T, chart, text, want string) {
	t.Helper()
	values, err := ReadChart(chart, []byte(text))
	if err != nil {
		t.Errorf("%q: %v", text, err)
		return
	}
	var got strings.Builder
	if err := values.WriteYAML(&got); err != nil || got.String() != want {
		t.Errorf("%q becomes %q, %v, want %q", text, got.String(), err, want)
	}
}

func TestValuesThatAreNone(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "{}\n",
		"null":                          "{}\n",
		"USER-SUPPLIED VALUES:\nnull\n": "{}\n",
		"controller: {config: [a]}":     "# controller.config is no map of keys\n{}\n",
		"controller: {kind: Both}":      "# controller.kind: proxy.kind is Deployment or DaemonSet\n{}\n",
		"controller: null\nudp: {}":     "{}\n",
		"controller: {ingressClassResource: {default: true}, watchIngressWithoutClass: false}":                             "ingressClass:\n  default: true\n",
		"controller: {scope: {enabled: false, namespace: shop}}":                                                           "{}\n",
		"controller: {scope: {enabled: false, namespaceSelector: a=b}}":                                                    "proxy:\n  watchNamespaceSelector: a=b\n",
		"controller: {scope: {enabled: true, namespace: shop, namespaceSelector: a=b}}":                                    "proxy:\n  watchNamespace: shop\n",
		"controller: {extraArgs: {watch-namespace-selector: a=b, disable-catch-all: '', disable-svc-external-name: true}}": "ingressClass:\n  allowCatchAll: false\n  externalNames: false\nproxy:\n  watchNamespaceSelector: a=b\n",
		"controller: {hostNetwork: true, extraArgs: {http-port: '8080'}}":                                                  "proxy:\n  hostNetwork:\n    enabled: true\n  ports:\n    http: 8080\n    https: 443\n",
		"controller: {extraArgs: {https-port: x}}":                                                                         "# controller.extraArgs.https-port is no port\n{}\n",
		"controller: {affinity: {podAntiAffinity: {app: ingress-nginx}}}":                                                  "# proxy.affinity names ingress-nginx, maybe by labels of its pods: ours have app.kubernetes.io/name=quayside, and a component of their own\nproxy:\n  affinity:\n    podAntiAffinity:\n      app: ingress-nginx\n",
		// Which Services there are.
		"controller: {service: {enabled: false, external: {enabled: true}, internal: {enabled: true, annotations: {a: b}}}}":                                                            "proxy:\n  service:\n    enabled: false\n",
		"controller: {service: {external: {enabled: false}, internal: {enabled: true}}}":                                                                                                "# controller.service.internal has no annotations, without which ingress-nginx makes no Service of it; proxy.internalService.enabled does\nproxy:\n  service:\n    enabled: false\n",
		"controller: {service: {internal: {enabled: false, type: NodePort, annotations: {a: b}}}}":                                                                                      "{}\n",
		"controller: {service: {type: NodePort, labels: {c: d}, ports: {http: 81, https: 444}, enableHttps: false, internal: {enabled: true, annotations: {a: b}, ports: {http: 82}}}}": "proxy:\n  internalService:\n    annotations:\n      a: b\n    enabled: true\n    labels:\n      c: d\n    ports:\n      http: 82\n      https: null\n    type: NodePort\n  service:\n    labels:\n      c: d\n    ports:\n      http: 81\n      https: null\n    type: NodePort\n",
		"controller: {scope: {enabled: true}}":                                                                            "# controller.scope: without a namespace it is that of the release; proxy.watchNamespace names it\n{}\n",
		"controller: {extraArgs: {maxmind-edition-ids: 'GeoLite2-Country,GeoIP2-ISP'}}":                                   "# proxies serve once they have the files of GeoLite2-Country and GeoIP2-ISP: see proxy.geoip.volume\nproxy:\n  geoip:\n    editions:\n    - GeoLite2-Country\n    - GeoIP2-ISP\n",
		"controller: {extraArgs: {maxmind-edition-ids: GeoLite2-Planet}}":                                                 "# controller.extraArgs.maxmind-edition-ids: \"GeoLite2-Planet\" is no edition that is known, such as GeoLite2-Country or GeoIP2-City: of GeoLite2 and GeoIP2 there are Anonymous-IP, ASN, City, Connection-Type, Country, Enterprise, ISP\n{}\n",
		"controller: {config: {use-geoip2: true, http-snippet: 'map $geoip2_city_country_code $a { default 0; DE 1; }'}}": "# proxy.config: http-snippet is obeyed as it is\n# proxies serve once they have the files of GeoLite2-City and GeoLite2-ASN: see proxy.geoip.volume\nproxy:\n  config:\n    http-snippet: map $geoip2_city_country_code $a { default 0; DE 1; }\n    use-geoip2: \"true\"\n  geoip:\n    editions:\n    - GeoLite2-City\n    - GeoLite2-ASN\n",
		"controller: {dnsConfig: {}, extraEnvs: [], service: {nodePorts: {http: ''}, type: '', ports: {http: 81}}}":       "proxy:\n  service:\n    ports:\n      http: 81\n",
		"controller: {service: x, extraArgs: [a]}":                                                                        "# controller.extraArgs is no map of keys\n# controller.service is no map of keys\n{}\n",
		"controller: x":           "# controller has no equivalent\n{}\n",
		"\"a\\nkind: Secret\": b": "# a\\nkind: Secret has no equivalent\n{}\n",
		"controller: {config: {location-snippet: 'more_set_headers \"X-A: a\";'}}": "# proxy.config: location-snippet is obeyed as it is\nproxy:\n  config:\n    location-snippet: 'more_set_headers \"X-A: a\";'\n",
		"controller: {config: {location-snippet: 'satisfy any of;'}}":              "# proxy.config: location-snippet line 1, satisfy any of;: ingress.quayside.io/satisfy: \"any\"\n# proxy.config: option location-snippet guards access by raw nginx configuration that is not obeyed: line 1, satisfy any of: nothing does that here, so every request of every route gets a 503; remove it if they may be open\nproxy:\n  config:\n    location-snippet: satisfy any of;\n",
		"controller: {hostNetwork: true}":                                          "proxy:\n  hostNetwork:\n    enabled: true\n  ports:\n    http: 80\n    https: 443\n",
	} {
		becomes(t, IngressNginxChart, text, want)
	}
	if _, err := ReadChart("traefik", nil); err == nil {
		t.Error("any chart is known")
	}
	for _, text := range []string{"a: b: c", "- a", strings.Repeat("#", MaxValues+1)} {
		if _, err := ReadChart(IngressNginxChart, []byte(text)); err == nil {
			t.Errorf("%.10q is taken for values", text)
		}
	}
}

// FuzzReadChart: whatever is read, what comes of it is values and comments.
func FuzzReadChart(f *testing.F) {
	for _, s := range []string{"controller: {config: {a: 1}}", "controller: {hostPort: {enabled: true, ports: 1}}", "\"a\\nb\": c", "controller: {service: {internal: {enabled: true}}}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		values, err := ReadChart(IngressNginxChart, []byte(text))
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := values.WriteYAML(&out); err != nil {
			t.Fatal(err)
		}
		var back map[string]any
		if err := yaml.Unmarshal(out.Bytes(), &back); err != nil || len(back) != len(values.Values) {
			t.Errorf("%q becomes %q: %v", text, out.String(), err)
		}
	})
}

func TestLogLevelsOfMetalLB(t *testing.T) {
	for level, want := range map[string]string{
		"all": "log:\n  level: debug\n", "debug": "log:\n  level: debug\n", "info": "log:\n  level: info\n", "warn": "log:\n  level: warn\n",
		"error": "log:\n  level: error\n", "none": "log:\n  level: error\n", "loud": "# speaker.logLevel: log.level is debug, info, warn or error\n{}\n",
	} {
		becomes(t, MetalLBChart, "speaker: {logLevel: "+level+"}", want)
	}
}

// Speakers of MetalLB are on the control plane unless it is said.
func TestTolerationsOfSpeakers(t *testing.T) {
	const edge, controlPlane = "  - key: edge\n", "  - effect: NoSchedule\n    key: node-role.kubernetes.io/control-plane\n    operator: Exists\n"
	for text, want := range map[string]string{
		"speaker: {tolerateMaster: true}":                              "{}\n",
		"speaker: {tolerateMaster: false}":                             "speaker:\n  tolerations: []\n",
		"speaker: {tolerations: [{key: edge}]}":                        "speaker:\n  tolerations:\n" + controlPlane + edge,
		"speaker: {tolerateMaster: true, tolerations: [{key: edge}]}":  "speaker:\n  tolerations:\n" + controlPlane + edge,
		"speaker: {tolerateMaster: false, tolerations: [{key: edge}]}": "speaker:\n  tolerations:\n" + edge,
		"speaker: {tolerations: x}":                                    "# speaker.tolerations is no list\n{}\n",
	} {
		becomes(t, MetalLBChart, text, want)
	}
}

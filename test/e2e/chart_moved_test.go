package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"quayside.io/command/migrate"
	"quayside.io/test/chart"
	"quayside.io/test/lab"
)

// Drawn values of the charts of ingress-nginx and MetalLB, and what `quayside migrate values` makes
// of them, give their chart and ours the same Services and workloads, as far as they say anything
// of these.
func TestValuesMeanTheSameInBothCharts(t *testing.T) {
	beside(t)
	lab.Require(t) // not for its own sake: the charts are part of what is fetched to be built
	for _, m := range []movedChart{
		{name: migrate.IngressNginxChart, values: ingressNginxValues(), workloads: map[string]string{"moved-ingress-nginx-controller": "quayside-proxy"},
			always: "controller: {admissionWebhooks: {enabled: false}}", // whose Jobs are hooks
			usual:  []string{"controller: {autoscaling: {enabled: true}}", "{}"}},
		{name: migrate.MetalLBChart, values: metalLBValues(), workloads: map[string]string{"moved-metallb-controller": "quayside-controller", "moved-metallb-speaker": "quayside-speaker"},
			always: "frrk8s: {enabled: false}", usual: []string{"{}"}},
	} {
		t.Run(m.name, m.compare)
	}
}

// movedChart is a chart whose values move.
type movedChart struct {
	name      string
	values    map[string][]string // by path, as YAML
	workloads map[string]string   // theirs, and Services of the name, by ours
	always    string              // values that each of its releases has here
	usual     []string            // values that show what it says unasked, which is not ours
	folder    string
}

func (m movedChart) compare(t *testing.T) {
	var err error
	if m.folder, err = lab.ChartOf(t.Context(), m.name); err != nil {
		t.Fatal(err)
	}
	unsaid := map[string]any{}
	for _, text := range m.usual {
		objects, _, err := m.render(text)
		if err != nil {
			t.Fatal(err)
		}
		for theirs := range m.workloads {
			maps.Copy(unsaid, factsOf(objects, theirs))
		}
	}
	facts := 0
	for seed := range drawn(60, 1500) {
		d := throw(seed, 14)
		text := m.draw(t, d)
		theirs, ours, err := m.render(text)
		if err != nil {
			t.Errorf("values %d: %v\n%s", seed, err, text)
			continue
		}
		for their, our := range m.workloads {
			was, is := factsOf(theirs, their), factsOf(ours, our)
			for fact := range is {
				if _, there := was[fact]; !there && strings.HasSuffix(fact, " is there") && our == "quayside-proxy" { // others have a Service for its admin port
					t.Errorf("values %d: %s of %s, here alone\n%s", seed, fact, our, text)
				}
			}
			for _, fact := range slices.Sorted(maps.Keys(was)) {
				if !strings.HasSuffix(fact, " is there") && jsonOf(was[fact]) == jsonOf(unsaid[fact]) {
					continue
				}
				if facts++; !within(was[fact], is[fact]) {
					t.Errorf("values %d: %s of %s: %s there, %s here\n%s", seed, fact, our, jsonOf(was[fact]), jsonOf(is[fact]), text)
				}
			}
		}
	}
	if t.Logf("%d facts", facts); facts < 100 {
		t.Errorf("%d facts are compared", facts)
	}
}

// draw draws a file of values.
func (m movedChart) draw(t *testing.T, d dice) string {
	t.Helper()
	values := map[string]any{}
	for _, path := range slices.Sorted(maps.Keys(m.values)) {
		if !d.seldom(6) {
			continue
		}
		var v any
		if err := yaml.Unmarshal([]byte(pick(d, m.values[path]...)), &v); err != nil {
			t.Fatal(err)
		}
		set(values, path, v)
	}
	text, err := yaml.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// render is what their chart makes of values, and ours of what they become.
func (m movedChart) render(text string) (theirs, ours []*unstructured.Unstructured, err error) {
	values, always := map[string]any{}, map[string]any{}
	if err := cmp.Or(yaml.Unmarshal([]byte(text), &values), yaml.Unmarshal([]byte(m.always), &always)); err != nil {
		return nil, nil, err
	}
	if theirs, err = chart.RenderIn(m.folder, "moved", lab.SystemNamespace, chartutil.CoalesceTables(values, always)); err != nil {
		return nil, nil, err
	}
	ours, err = renderMoved(m.name, []byte(text))
	return theirs, ours, err
}

// ingressNginxValues are values of ingress-nginx's chart.
func ingressNginxValues() map[string][]string {
	return map[string][]string{
		"controller.kind": {"DaemonSet"}, "controller.replicaCount": {"1", "3"}, "controller.service.enabled": {"false", "true"}, "controller.service.external.enabled": {"false", "true"},
		"controller.service.internal.enabled": {"true"}, "controller.service.internal.annotations": {"{a: b}"}, "controller.service.annotations": {"{e: f}"}, "controller.service.labels": {"{l: m}"},
		"controller.service.type": {"NodePort", "ClusterIP", "LoadBalancer"}, "controller.service.internal.type": {"NodePort", "ClusterIP"},
		"controller.service.externalTrafficPolicy": {"Local", "Cluster"}, "controller.service.internal.externalTrafficPolicy": {"Cluster"}, "controller.service.externalIPs": {"[192.0.2.9]"},
		"controller.service.internal.externalIPs": {"[192.0.2.8]"}, "controller.service.loadBalancerIP": {"192.0.2.7"}, "controller.service.internal.loadBalancerIP": {"192.0.2.6"},
		"controller.service.loadBalancerSourceRanges": {"[10.0.0.0/8]"}, "controller.service.internal.loadBalancerSourceRanges": {"[10.1.0.0/16]"}, "controller.service.loadBalancerClass": {"x.example/y"},
		"controller.service.allocateLoadBalancerNodePorts": {"false"}, "controller.service.ipFamilyPolicy": {"PreferDualStack"}, "controller.service.ipFamilies": {"[IPv6]"},
		"controller.service.ports.http": {"81"}, "controller.service.ports.https": {"444"}, "controller.service.internal.ports": {"{http: 82}", "{https: 445}"},
		"controller.service.nodePorts.http": {"30080"}, "controller.service.nodePorts.https": {"30443"}, "controller.service.internal.nodePorts.http": {"30081"},
		"controller.service.enableHttp": {"false", "true"}, "controller.service.enableHttps": {"true"},
		"controller.hostNetwork": {"true"}, "controller.autoscaling.enabled": {"true"}, "controller.autoscaling.maxReplicas": {"20"}, "controller.autoscaling.minReplicas": {"2"},
		"controller.autoscaling.targetCPUUtilizationPercentage": {"70"}, "controller.autoscaling.behavior": {"{scaleDown: {stabilizationWindowSeconds: 60}}"},
		"controller.scope": {"{enabled: true, namespace: shop}", "{enabled: true, namespace: shop, namespaceSelector: a=b}", "{namespace: shop, namespaceSelector: a=b}"}, "controller.extraArgs.default-ssl-certificate": {"shop/pair"},
		"controller.resources": {"{limits: {cpu: 2}, requests: {cpu: 1, memory: 1Gi}}"}, "controller.nodeSelector": {"{edge: \"yes\"}"}, "controller.tolerations": {"[{operator: Exists}]"}, "controller.affinity": {"{nodeAffinity: {}}"},
		"controller.minReadySeconds": {"3"}, "controller.podAnnotations": {"{p: q}"}, "controller.podLabels": {"{r: s}"}, "controller.updateStrategy": {"{type: RollingUpdate, rollingUpdate: {maxUnavailable: 1}}"},
		"controller.extraEnvs": {"[{name: TZ, value: UTC}]"}, "controller.priorityClassName": {"system-cluster-critical"}, "controller.dnsPolicy": {"Default"}, "controller.ingressClassResource.default": {"true"},
		"controller.extraContainers": {"[{name: beside, image: x}]"}, "controller.extraInitContainers": {"[{name: first, image: x}]"}, "controller.config": {"{use-gzip: true, hsts-max-age: 63072000}"},
		"controller.topologySpreadConstraints": {"[{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]"},
	}
}

// metalLBValues are values of MetalLB's chart.
func metalLBValues() map[string][]string {
	values := map[string][]string{
		"loadBalancerClass": {"x.example/y"}, "controller.strategy": {"{type: Recreate}"}, "speaker.updateStrategy": {"{type: OnDelete}"},
		"speaker.tolerateMaster": {"true", "false"}, "speaker.ignoreExcludeLB": {"true"},
	}
	for _, component := range []string{"controller.", "speaker."} {
		maps.Copy(values, map[string][]string{
			component + "resources": {"{limits: {cpu: 2}}"}, component + "nodeSelector": {"{edge: \"yes\"}"}, component + "tolerations": {"[{operator: Exists}]", "[{key: edge}, {key: b, value: c}]"},
			component + "affinity": {"{nodeAffinity: {}}"}, component + "priorityClassName": {"system-node-critical"}, component + "podAnnotations": {"{p: q}"}, component + "labels": {"{r: s}"},
		})
	}
	return values
}

// set puts a value at a path.
func set(values map[string]any, path string, v any) {
	names := strings.Split(path, ".")
	for _, name := range names[:len(names)-1] {
		inner, is := values[name].(map[string]any)
		if !is {
			inner = map[string]any{}
			values[name] = inner
		}
		values = inner
	}
	values[names[len(names)-1]] = v
}

// factsOf are what objects say about the Services and the workload of a name.
func factsOf(objects []*unstructured.Unstructured, name string) map[string]any {
	facts := map[string]any{}
	for _, o := range objects {
		which, of := strings.CutPrefix(o.GetName(), name)
		at := func(fields ...string) any {
			v, _, _ := unstructured.NestedFieldNoCopy(o.Object, fields...)
			return v
		}
		switch kind := o.GetKind(); {
		case kind == "Service" && of && (which == "" || which == "-internal"):
			what := cmp.Or(which, "service")
			facts[what+" is there"] = true
			facts[what+" annotations"] = at("metadata", "annotations")
			facts[what+" label"] = o.GetLabels()["l"]
			for _, field := range []string{"type", "externalIPs", "ipFamilyPolicy", "ipFamilies"} {
				facts[what+" "+field] = at("spec", field)
			}
			if at("spec", "type") != "ClusterIP" || at("spec", "externalIPs") != nil { // no server takes it elsewhere
				facts[what+" externalTrafficPolicy"] = at("spec", "externalTrafficPolicy")
			}
			if at("spec", "type") == "LoadBalancer" { // nothing comes of these elsewhere
				for _, field := range []string{"loadBalancerSourceRanges", "loadBalancerClass", "allocateLoadBalancerNodePorts"} {
					facts[what+" "+field] = at("spec", field)
				}
			}
			if ip := at("spec", "loadBalancerIP"); ip != nil {
				facts[what+" address"] = ip
			} else if asked := o.GetAnnotations()["quayside.io/loadBalancerIPs"]; asked != "" {
				facts[what+" address"] = asked
			}
			list, _ := at("spec", "ports").([]any)
			for _, p := range list {
				p, _ := p.(map[string]any)
				facts[fmt.Sprint(what, " port ", p["name"], " is there")] = []any{p["port"], p["nodePort"]}
			}
		case (kind == "Deployment" || kind == "DaemonSet") && of && which == "":
			facts["kind"] = kind
			facts["replicas"], facts["minReadySeconds"] = at("spec", "replicas"), at("spec", "minReadySeconds")
			facts["strategy"] = at("spec", map[string]string{"Deployment": "strategy", "DaemonSet": "updateStrategy"}[kind])
			facts["pod annotations"], facts["pod label"] = at("spec", "template", "metadata", "annotations"), at("spec", "template", "metadata", "labels", "r")
			for _, field := range []string{"hostNetwork", "nodeSelector", "affinity", "priorityClassName", "initContainers"} {
				facts["pod "+field] = at("spec", "template", "spec", field)
			}
			tolerations, _ := at("spec", "template", "spec", "tolerations").([]any)
			tolerations = slices.DeleteFunc(slices.Clone(tolerations), func(of any) bool {
				return strings.Contains(jsonOf(of), "node-role.kubernetes.io/master") // which no node has since Kubernetes 1.25
			})
			if len(tolerations) > 0 {
				facts["pod tolerations"] = tolerations
			}
			if kind == "Deployment" { // of which a node may have more than one
				facts["pod topologySpreadConstraints"] = at("spec", "template", "spec", "topologySpreadConstraints")
			}
			containers, _ := at("spec", "template", "spec", "containers").([]any)
			facts["containers"] = len(containers)
			first, _ := containers[0].(map[string]any)
			facts["resources"] = first["resources"]
			env, _ := first["env"].([]any)
			facts["env"] = slices.ContainsFunc(env, func(e any) bool { return strings.Contains(jsonOf(e), `"TZ"`) })
			args, _ := first["args"].([]any)
			for _, flag := range []string{"--watch-namespace", "--watch-namespace-selector", "--default-ssl-certificate"} {
				facts[flag] = ""
				for _, a := range args {
					if value, is := strings.CutPrefix(fmt.Sprint(a), flag+"="); is {
						facts[flag] = value
					}
				}
			}
		case kind == "HorizontalPodAutoscaler" && of:
			facts["autoscaler is there"] = true
			for _, field := range []string{"minReplicas", "maxReplicas", "behavior"} {
				facts["autoscaler "+field] = at("spec", field)
			}
			metrics, _ := at("spec", "metrics").([]any)
			for _, m := range metrics {
				if text := jsonOf(m); strings.Contains(text, `"cpu"`) {
					facts["autoscaler of the processor"] = text
				}
			}
		}
	}
	return facts
}

func jsonOf(v any) string {
	if v == nil {
		return ""
	}
	text, _ := json.Marshal(v)
	return string(text)
}

// within reports whether all that was is what is, which may be more where nothing was.
func within(was, is any) bool {
	switch w := was.(type) {
	case nil:
		return true
	case string:
		return w == "" || w == is
	case map[string]any:
		i, _ := is.(map[string]any)
		for name, v := range w {
			if !within(v, i[name]) {
				return false
			}
		}
		return true
	}
	return jsonOf(was) == jsonOf(is)
}

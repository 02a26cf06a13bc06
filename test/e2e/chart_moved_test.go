package e2e

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"quayside.io/command/migrate"
	"quayside.io/test/chart"
	"quayside.io/test/lab"
)

// Drawn values of ingress-nginx's chart, and what `quayside migrate values` makes of them, give the
// two charts the same Services and workload, as far as they say anything of these.
func TestValuesMeanTheSameInBothCharts(t *testing.T) {
	beside(t)
	lab.Require(t) // not for its own sake: the chart is part of what is fetched to be built
	folder, err := lab.ChartOf(t.Context(), migrate.IngressNginxChart)
	if err != nil {
		t.Fatal(err)
	}
	facts, unsaid := 0, map[string]any{} // by their defaults, which are not ours
	for _, scales := range []bool{true, false} {
		usual, err := theirObjects(folder, map[string]any{"controller": map[string]any{"autoscaling": map[string]any{"enabled": scales}}})
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(unsaid, factsOf(usual, theirName))
	}
	for seed := range drawn(60, 1500) {
		d := dice{rand.New(rand.NewPCG(uint64(seed), 14))}
		values := map[string]any{}
		for _, path := range slices.Sorted(maps.Keys(theirValues)) {
			if d.seldom(6) {
				var v any
				if err := yaml.Unmarshal([]byte(pick(d, theirValues[path]...)), &v); err != nil {
					t.Fatal(err)
				}
				set(values, path, v)
			}
		}
		theirs, err := theirObjects(folder, values)
		if err != nil {
			t.Fatal(err)
		}
		text, err := yaml.Marshal(values)
		if err != nil {
			t.Fatal(err)
		}
		moved, err := migrate.ReadChart(migrate.IngressNginxChart, text)
		var out bytes.Buffer
		if err == nil {
			err = moved.WriteYAML(&out)
		}
		var own map[string]any
		if err == nil {
			err = yaml.Unmarshal(out.Bytes(), &own)
		}
		if err != nil {
			t.Fatal(err)
		}
		_, ours, err := chart.Render("quayside", lab.SystemNamespace, own)
		if err != nil {
			t.Errorf("values %d: %v\n%s\n%s", seed, err, text, out.String())
			continue
		}
		was, is := factsOf(theirs, theirName), factsOf(ours, "quayside-proxy")
		for _, fact := range slices.Sorted(maps.Keys(was)) {
			if !strings.HasSuffix(fact, " is there") && jsonOf(was[fact]) == jsonOf(unsaid[fact]) {
				continue
			}
			facts++
			if !within(was[fact], is[fact]) {
				t.Errorf("values %d: %s: %s there, %s here\n%s\n%s", seed, fact, jsonOf(was[fact]), jsonOf(is[fact]), text, out.String())
			}
		}
		for fact := range is {
			if _, there := was[fact]; !there && strings.HasSuffix(fact, " is there") {
				t.Errorf("values %d: %s, here alone\n%s\n%s", seed, fact, text, out.String())
			}
		}
	}
	t.Logf("%d facts", facts)
}

// theirValues are values of ingress-nginx's chart by path, as YAML.
var theirValues = map[string][]string{
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

// theirName is that of their Service and workload.
const theirName = "moved-ingress-nginx-controller"

// theirObjects are what their chart makes of values, without the hooks of its webhook.
func theirObjects(folder string, values map[string]any) ([]*unstructured.Unstructured, error) {
	values = maps.Clone(values)
	controller, _ := values["controller"].(map[string]any)
	controller = maps.Clone(controller)
	if controller == nil {
		controller = map[string]any{}
	}
	controller["admissionWebhooks"], values["controller"] = map[string]any{"enabled": false}, controller
	return chart.RenderIn(folder, "moved", lab.SystemNamespace, values)
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
			facts["strategy"] = cmp.Or(jsonOf(at("spec", "strategy")), jsonOf(at("spec", "updateStrategy")))
			facts["pod annotations"], facts["pod label"] = at("spec", "template", "metadata", "annotations"), at("spec", "template", "metadata", "labels", "r")
			for _, field := range []string{"hostNetwork", "nodeSelector", "tolerations", "affinity", "priorityClassName", "initContainers"} {
				facts["pod "+field] = at("spec", "template", "spec", field)
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

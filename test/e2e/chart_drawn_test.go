package e2e

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"quayside.io/test/chart"
	"quayside.io/test/lab"
)

// Values drawn from what the chart's schema allows are refused by the chart in words of its own,
// or a real API server takes every object that comes of them, and its pods in their namespaces.
func TestDrawnValuesAreAccepted(t *testing.T) {
	beside(t)
	c := apiServer(t)
	makeNamespace(t, c, "shop")
	schema := readSchema(t)
	taken, refused := 0, map[string]int{}
	for seed := range drawn(50, 1000) {
		d := &drawnValues{throw(seed, 13), schema["$defs"].(map[string]any)}
		values, _ := d.draw("", schema).(map[string]any)
		text, err := yaml.Marshal(values)
		if err != nil {
			t.Fatal(err)
		}
		_, objects, err := chart.Render("quayside", lab.SystemNamespace, values)
		if err != nil {
			_, said, _ := strings.Cut(err.Error(), "): ") // execution error at (template:line:column)
			if refused[said]++; said == "" {
				t.Errorf("values %d are refused in words that are not the chart's: %v\n%s", seed, err, text)
			}
			continue
		}
		taken++
		for name := range strings.FieldsSeq("quayside-proxy edge edge-proxy 9-proxy") { // whose labels say which pods are let in
			apply(t, c, namespaceOf(objects, name))
		}
		for _, o := range objects {
			if o.GroupVersionKind().Group == "monitoring.coreos.com" { // whose CRDs are not there
				continue
			}
			if err := dryRun(t.Context(), c, o); err != nil && !saysIt(err) {
				t.Errorf("values %d: %s %s: %v\n%s", seed, o.GetKind(), o.GetName(), err, text)
			}
			if pod := podOf(o); pod != nil {
				if err := letsIn(t.Context(), c, pod); err != nil && !saysIt(err) {
					t.Errorf("values %d: the pod of %s %s: %v\n%s", seed, o.GetKind(), o.GetName(), err, text)
				}
			}
		}
	}
	if t.Logf("%d taken, refused %v", taken, refused); taken < 20 {
		t.Errorf("%d values are taken: that shows too little", taken)
	}
}

// readSchema is values.schema.json.
func readSchema(t *testing.T) (schema map[string]any) {
	t.Helper()
	root, err := chart.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "values.schema.json"))
	if err == nil {
		err = json.Unmarshal(text, &schema)
	}
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// drawnValues draws values of a schema with these definitions.
type drawnValues struct {
	dice
	definitions map[string]any
}

// often is of how many values one is drawn.
const often = 12

// draw is a value at a path, or nil.
func (d *drawnValues) draw(path string, schema map[string]any) any {
	if ref, is := schema["$ref"].(string); is {
		schema, _ = d.definitions[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
	}
	if properties, _ := schema["properties"].(map[string]any); len(properties) > 0 {
		all := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			sub, _ := properties[name].(map[string]any)
			if v := d.draw(path+"."+name, sub); v != nil {
				all[name] = v
			}
		}
		if len(all) == 0 {
			return nil
		}
		return all
	}
	if !d.seldom(often) {
		return nil
	}
	if choices, _ := schema["enum"].([]any); len(choices) > 0 {
		return pick(d.dice, choices...)
	}
	for suffix, choices := range drawnTexts {
		if strings.HasSuffix(path, suffix) {
			var v any
			if err := yaml.Unmarshal([]byte(pick(d.dice, choices...)), &v); err != nil {
				panic(err)
			}
			return v
		}
	}
	switch schema["type"] {
	case "boolean":
		return d.IntN(2) == 0
	case "integer":
		least, _ := schema["minimum"].(float64)
		return pick(d.dice, int(least), int(least)+1, 3, 100)
	}
	return nil
}

// drawnTexts are values by the ends of paths, as YAML.
var drawnTexts = map[string][]string{
	".nameOverride": {"edge"}, ".fullnameOverride": {"edge", `"9"`},
	".tag": {"v1.2.3", `"2"`}, ".digest": {"sha256:" + strings.Repeat("ab", 32)}, ".pullSecrets": {"[{name: pull}]"},
	"abels": {`{team: edge}`, `{app.kubernetes.io/part-of: x, n: "1"}`}, ".annotations": {"{a.example/b: c}"}, ".podAnnotations": {"{a.example/b: c}"},
	".existingSecret": {"made"}, ".maxAge": {"1h"}, ".lastKnown.size": {"64Mi", "1G"}, ".class": {"example.com/lb"}, ".loadBalancerClass": {"example.com/lb"},
	".ingressClass.name": {"edge", "a.b"}, ".adoptControllers": {"[k8s.io/ingress-nginx]"}, ".adoptNames": {"[nginx]"},
	".extraArgs": {"[--log-level=debug]"}, ".extraEnv": {"[{name: GOGC, value: \"50\"}]", "[{name: POD_NAME, value: x}]"},
	".resources": {"{requests: {cpu: 100m}, limits: {memory: 1Gi}}", "{}"}, "dminPort": {"8080", "9999", "443", "7946"}, ".priorityClassName": {"system-cluster-critical", `""`},
	".serviceAccount.name": {"edge", "default"}, ".podSecurityContext": {"{fsGroup: 65532}"}, ".dnsConfig": {"{nameservers: [192.0.2.1]}"},
	".initContainers": {"[{name: first, image: busybox, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]"}, ".extraContainers": {"[{name: beside, image: busybox, ports: [{name: side, containerPort: 9000}], securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]"},
	".extraVolumes": {"[{name: more, emptyDir: {}}]", "[{name: more, hostPath: {path: /more}}]"},
	".nodeSelector": {"{edge: \"true\"}"}, ".tolerations": {"[{operator: Exists}]", "[]"}, ".affinity": {"{nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: edge, operator: Exists}]}]}}}"},
	".topologySpreadConstraints": {"[{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]", "[]"},
	".publishAddresses":          {"[192.0.2.1, \"2001:db8::1\"]"}, ".publishService": {"shop/front"}, ".members.port": {"7947"}, ".keyRotation": {"24h", `""`, "0s"},
	".listen": {`":179"`, `"192.0.2.1:1790"`, `"[::]:179"`}, ".kubeProxyMetrics": {`""`, "http://127.0.0.1:10249/metrics"}, ".proxy.namespace.name": {"edge", `""`},
	".watchNamespace": {"shop"}, ".watchNamespaceSelector": {"edge=true"}, ".defaultSSLCertificate": {"shop/pair"}, ".defaultBackendService": {"shop/pages"},
	".proxy.config": {"{use-gzip: \"true\"}"}, ".proxy.configMap": {"shop/options"}, ".editions": {"[GeoLite2-City]"}, ".volume": {"{emptyDir: {}}", "{hostPath: {path: /var/lib/x}}"},
	".dir": {"/geo"}, ".trustedProxies": {"[10.0.0.0/8]"}, ".bodyFiles.size": {"1Gi", "0", "1000"}, ".accessLog.format": {"json", `"$remote_addr $status"`, `"off"`}, ".fields": {"[status, host]"}, ".share": {"0.5", "0", "1"},
	".proxy.ports.http": {"80", "8081"}, ".proxy.ports.https": {"443", "8444"}, ".hostPorts.http": {"80"}, ".hostPorts.https": {"443"},
	".loadBalancerIPs": {"[192.0.2.1]", "[192.0.2.1, \"2001:db8::1\"]"}, ".addressPool": {"lan"}, ".loadBalancerSourceRanges": {"[192.0.2.0/24]"}, "ervice.externalIPs": {"[192.0.2.9]"},
	".ipFamilies": {"[IPv4]"}, ".service.ports.http": {"81"}, ".service.ports.https": {"444"}, "nalService.ports.http": {"81"}, "nalService.ports.https": {"444"},
	".nodePorts.http": {"30080"}, ".nodePorts.https": {"30443"}, ".allocateLoadBalancerNodePorts": {"true", "false"}, ".maxUnavailable": {"1", "20%", "0"},
	".updateStrategy": {"{type: RollingUpdate}"}, ".behavior": {"{scaleDown: {stabilizationWindowSeconds: 60}}"}, ".metrics": {"[{type: Resource, resource: {name: memory, target: {type: Utilization, averageUtilization: 80}}}]"},
	".pools": {"[{name: lan, addresses: [192.0.2.0/24]}]", "[{name: lan, addresses: [192.0.2.0/24], autoAssign: false}, {name: b, addresses: [192.0.3.0/24]}]"},
	".peers": {"[{name: tor, myASN: 64500, peerASN: 64501, peerAddress: 10.0.0.254}]"}, ".l2Advertisements": {"[{name: lan}]"}, ".bgpAdvertisements": {"[{name: lan, ipAddressPools: [lan]}]"},
	".bfdProfiles": {"[{name: fast, receiveInterval: 100}]"}, ".communities": {"[{name: c, communities: [{name: a, value: \"65000:1\"}]}]"},
	".readers": {"[{namespace: shop, name: prometheus}]", "[{name: prometheus}]"}, ".tokenSecret": {"token"}, ".interval": {"30s"}, ".scrapeTimeout": {"5s"}, ".tlsConfig": {"{insecureSkipVerify: true}"},
	"elabelings": {"[{action: labeldrop, regex: x}]"}, ".additionalRules": {"[{alert: Mine, expr: vector(1)}]"}, ".metricsFrom": {"[{namespaceSelector: {}}]"},
	".terminationGracePeriodSeconds": {"30", "100"}, ".gracePeriodSeconds": {"10", "60", "0"}, ".livenessProbe": {"{periodSeconds: 20}"}, ".readinessProbe": {"{periodSeconds: 2}"}, ".startupProbe": {"{failureThreshold: 100}"},
	".lifecycle": {"{preStop: {sleep: {seconds: 3}}}"}, ".securityContext": {"{readOnlyRootFilesystem: true}"},
}

// namespaceOf is a Namespace of the objects, or one without labels.
func namespaceOf(objects []*unstructured.Unstructured, name string) *unstructured.Unstructured {
	for _, o := range objects {
		if o.GetKind() == "Namespace" && o.GetName() == name {
			return o
		}
	}
	o := new(unstructured.Unstructured)
	o.SetAPIVersion("v1")
	o.SetKind("Namespace")
	o.SetName(name)
	return o
}

// saysIt reports whether a server's refusal is what the chart could say no better.
func saysIt(err error) bool {
	return strings.Contains(err.Error(), "must provide `dnsConfig` when `dnsPolicy` is None") ||
		strings.Contains(err.Error(), "this cluster is not configured for dual-stack services")
}

// letsIn reports why a server does not let a pod in, which learns of the labels of its namespace a
// moment later.
func letsIn(ctx context.Context, c *lab.Cluster, pod *corev1.Pod) (err error) {
	pod.Spec.ServiceAccountName = "" // which is not there
	for range 50 {
		_, err = c.Kube().CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), "violates PodSecurity") {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
	return err
}

// podOf is a pod of a workload, or nil.
func podOf(o *unstructured.Unstructured) *corev1.Pod {
	if o.GetKind() != "Deployment" && o.GetKind() != "DaemonSet" {
		return nil
	}
	template, _, _ := unstructured.NestedMap(o.Object, "spec", "template")
	text, err := json.Marshal(template)
	pod := new(corev1.Pod)
	if err == nil {
		err = json.Unmarshal(text, pod)
	}
	if err != nil {
		return nil
	}
	pod.Name, pod.Namespace = o.GetName(), o.GetNamespace()
	return pod
}

package chart

import (
	"path"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
)

// TestProxyNamespace: the proxy has a namespace of its own, in which Pod Security
// Admission enforces what the proxy keeps to, unless the values say otherwise.
func TestProxyNamespace(t *testing.T) {
	const enforce = "pod-security.kubernetes.io/enforce"
	for text, want := range map[string]struct{ name, made, level string }{
		``: {"quayside-proxy", "quayside-proxy", "restricted"},
		`{proxy: {namespace: {name: edge, labels: {a: b}}}}`:                             {"edge", "edge", "restricted"},
		`{proxy: {namespace: {labels: {pod-security.kubernetes.io/enforce: baseline}}}}`: {"quayside-proxy", "quayside-proxy", "baseline"},
		`{proxy: {hostNetwork: {enabled: true}}}`:                                        {"quayside-proxy", "quayside-proxy", "privileged"},
		`{proxy: {hostPorts: {http: 80, https: 443}}}`:                                   {"quayside-proxy", "quayside-proxy", "privileged"},
		// Volumes that a stricter level forbids.
		`{proxy: {geoip: {editions: [GeoLite2-City], volume: {hostPath: {path: /geo}}}}}`:                  {"quayside-proxy", "quayside-proxy", "privileged"},
		`{proxy: {geoip: {editions: [GeoLite2-City], volume: {persistentVolumeClaim: {claimName: geo}}}}}`: {"quayside-proxy", "quayside-proxy", "restricted"},
		`{lastKnown: {enabled: false}, proxy: {bodyFiles: {size: 0}}}`:                                     {"quayside-proxy", "quayside-proxy", "restricted"},
		`{proxy: {bodyFiles: {volume: {hostPath: {path: /bodies}}}}}`:                                      {"quayside-proxy", "quayside-proxy", "privileged"},
		`{proxy: {extraVolumes: [{name: a, configMap: {name: a}}, {name: b, nfs: {server: b, path: /}}]}}`: {"quayside-proxy", "quayside-proxy", "baseline"},
		`{proxy: {extraVolumes: [{name: a, nfs: {server: b, path: /}}, {name: b, hostPath: {path: /}}]}}`:  {"quayside-proxy", "quayside-proxy", "privileged"},
		`{proxy: {namespace: {name: mine, create: false}}}`:                                                {"mine", "", ""},
		`{proxy: {namespace: {name: quayside-system}}}`:                                                    {"quayside-system", "", ""},
		`{fullnameOverride: "", proxy: {enabled: false}}`:                                                  {"", "", ""},
	} {
		made, level := "", ""
		for _, object := range rendered(t, values(t, text)) {
			if n, ok := object.(*corev1.Namespace); ok {
				made, level = n.Name, n.Labels[enforce]
			}
		}
		if made != want.made || level != want.level {
			t.Errorf("%s: namespace %q with %q, want %q with %q", text, made, level, want.made, want.level)
		}
		for _, object := range renderObjects(t, values(t, text)) {
			component := object.GetLabels()["app.kubernetes.io/component"]
			switch kind := object.GetKind(); {
			case kind == "Role" || kind == "RoleBinding": // where what they open is
			case component == "proxy" && object.GetNamespace() != "" && object.GetNamespace() != want.name:
				t.Errorf("%s: %s %s is in %s, want %s", text, kind, object.GetName(), object.GetNamespace(), want.name)
			case component != "proxy" && object.GetNamespace() != "" && object.GetNamespace() != "quayside-system":
				t.Errorf("%s: %s %s is in %s, beside the proxy", text, kind, object.GetName(), object.GetNamespace())
			}
		}
	}
}

// workloadsOf is a cluster with Deployments and DaemonSets in it, as a template asks
// for them.
type workloadsOf struct{ client dynamic.Interface }

func (w workloadsOf) GetClientFor(version, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	gv, err := schema.ParseGroupVersion(version)
	return w.client.Resource(gv.WithResource(strings.ToLower(kind) + "s")), true, err
}

// TestUpgradeLeavesTheProxy: an upgrade moves no proxy that is beside the rest, unless
// somebody says so, and brings none back that is not.
func TestUpgradeLeavesTheProxy(t *testing.T) {
	for name, tt := range map[string]struct{ kind, namespace, values, want string }{
		"beside the rest":       {"Deployment", "quayside-system", ``, "quayside-system"},
		"on every node":         {"DaemonSet", "quayside-system", ``, "quayside-system"},
		"which kind changes":    {"DaemonSet", "quayside-system", `{proxy: {kind: Deployment}}`, "quayside-system"},
		"that is to move":       {"Deployment", "quayside-system", `{proxy: {namespace: {name: edge}}}`, "edge"},
		"that lives apart":      {"Deployment", "quayside-proxy", ``, "quayside-proxy"},
		"of another release":    {"Deployment", "elsewhere", ``, "quayside-proxy"},
		"that is not there yet": {"Deployment", "", ``, "quayside-proxy"},
	} {
		t.Run(name, func(t *testing.T) {
			var there []runtime.Object
			if tt.namespace != "" {
				o := &unstructured.Unstructured{}
				o.SetAPIVersion("apps/v1")
				o.SetKind(tt.kind)
				o.SetNamespace(tt.namespace)
				o.SetName("quayside-proxy")
				there = append(there, o)
			}
			files := upgrade(t, values(t, tt.values), there...)
			made := false
			for file, text := range files {
				objects, err := decode(file, []byte(text))
				if err != nil {
					t.Fatal(err)
				}
				for _, o := range objects {
					switch {
					case o.GetKind() == "Namespace":
						made = o.GetName() == tt.want
					case (o.GetKind() == "Deployment" || o.GetKind() == "Service") && o.GetName() == "quayside-proxy" && o.GetNamespace() != tt.want:
						t.Errorf("the %s of the proxy is in %s, want %s", o.GetKind(), o.GetNamespace(), tt.want)
					}
				}
			}
			if beside := tt.want == "quayside-system"; made == beside {
				t.Errorf("namespace made: %v", made)
			}
		})
	}
}

// TestOneReleaseInANamespace: a second release is refused where the first one's Lease and
// Secrets are, with the name of the first; that itself goes on, and so does one beside
// which is something of the same name that is not ours.
func TestOneReleaseInANamespace(t *testing.T) {
	for name, tt := range map[string]struct {
		namespace           string
		labels, annotations map[string]string
		refused             bool
	}{
		"itself":                    {"quayside-system", map[string]string{"app.kubernetes.io/part-of": "quayside", "app.kubernetes.io/instance": "quayside"}, nil, false},
		"another":                   {"quayside-system", map[string]string{"app.kubernetes.io/part-of": "quayside", "app.kubernetes.io/instance": "first"}, nil, true},
		"another, by Helm":          {"quayside-system", map[string]string{"app.kubernetes.io/part-of": "quayside"}, map[string]string{"meta.helm.sh/release-name": "first"}, true},
		"itself, labels of a GUI":   {"quayside-system", map[string]string{"app.kubernetes.io/part-of": "quayside", "app.kubernetes.io/instance": "edge"}, map[string]string{"meta.helm.sh/release-name": "quayside"}, false},
		"another elsewhere":         {"elsewhere", map[string]string{"app.kubernetes.io/part-of": "quayside", "app.kubernetes.io/instance": "first"}, nil, false},
		"somebody else's":           {"quayside-system", map[string]string{"app.kubernetes.io/instance": "first"}, nil, false},
		"somebody's without a word": {"quayside-system", nil, nil, false},
	} {
		there := &unstructured.Unstructured{}
		there.SetAPIVersion("v1")
		there.SetKind("Service")
		there.SetNamespace(tt.namespace)
		there.SetName("quayside-controller")
		there.SetLabels(tt.labels)
		there.SetAnnotations(tt.annotations)
		_, err := upgraded(t, nil, there)
		switch {
		case tt.refused && (err == nil || !strings.Contains(err.Error(), "release first of Quayside is in namespace quayside-system") || !strings.Contains(err.Error(), "install release quayside in a namespace of its own")):
			t.Errorf("%s: not refused, or without the first's name: %v", name, err)
		case !tt.refused && err != nil:
			t.Errorf("%s: refused: %v", name, err)
		}
	}
}

// upgrade is what `helm upgrade` would send to a cluster with these objects in it.
func upgrade(t *testing.T, v map[string]any, there ...runtime.Object) map[string]string {
	t.Helper()
	files, err := upgraded(t, v, there...)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// upgraded is upgrade where the chart may refuse.
func upgraded(t *testing.T, v map[string]any, there ...runtime.Object) (map[string]string, error) {
	t.Helper()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	chart, err := loader.LoadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	merged, err := chartutil.ToRenderValues(chart, v, chartutil.ReleaseOptions{Name: "quayside", Namespace: "quayside-system", Revision: 2, IsUpgrade: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.RenderWithClientProvider(chart, merged, workloadsOf{fake.NewSimpleDynamicClient(runtime.NewScheme(), there...)})
	for name := range files {
		if path.Ext(name) != ".yaml" {
			delete(files, name)
		}
	}
	return files, err
}

package scenario

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
)

// Play carries one step out: it gets the cluster after the step's changes,
// the time and the settings so far, and returns the cluster to go on with and
// a description of what came of it.
type Play func(c *snapshot.Cluster, now time.Time, settings map[string]string) (*snapshot.Cluster, string)

// Run plays every YAML file of a folder as a subtest named after it. start
// begins a new history.
func Run(t *testing.T, folder string, update bool, start func(*testing.T) Play) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios in %s (%v)", folder, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := perform(t, string(want), start(t))
			switch {
			case got == string(want):
			case !update:
				t.Errorf("%s: wanted\n%s\ngot\n%s", file, want, got)
			default:
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func perform(t *testing.T, text string, play Play) string {
	var out strings.Builder
	c, settings := snapshot.Of(), map[string]string{}
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for i, step := range strings.Split(text, "---- then\n") {
		given, _, ok := strings.Cut(step, "---- expect\n")
		if !ok {
			t.Fatalf("step %d has no line \"---- expect\"", i+1)
		}
		delete(settings, "delete")
		delete(settings, "after")
		for doc := range strings.SplitSeq("\n"+given, "\n---\n") {
			c = read(t, c, doc, settings)
		}
		if after := settings["after"]; after != "" {
			d, err := time.ParseDuration(after)
			if err != nil {
				t.Fatalf("step %d: %v", i+1, err)
			}
			now = now.Add(d)
		}
		var outcome string
		c, outcome = play(c, now, settings)
		if i > 0 {
			out.WriteString("---- then\n")
		}
		fmt.Fprintf(&out, "%s---- expect\n%s", given, outcome)
	}
	return out.String()
}

// read applies one document: an object, or settings.
func read(t *testing.T, c *snapshot.Cluster, doc string, settings map[string]string) *snapshot.Cluster {
	var kind struct{ Kind string }
	if err := yaml.Unmarshal([]byte(doc), &kind); err != nil {
		t.Fatalf("%v in\n%s", err, doc)
	}
	var into any = &settings
	obj := blank(kind.Kind)
	if obj != nil {
		into = obj
	}
	if err := yaml.UnmarshalStrict([]byte(doc), into); err != nil {
		t.Fatalf("%v in\n%s", err, doc)
	}
	if obj != nil {
		return c.With(obj)
	}
	for ref := range strings.SplitSeq(settings["delete"], ",") {
		kind, name, _ := strings.Cut(strings.TrimSpace(ref), " ")
		key := snapshot.Key{Name: name}
		if ns, name, ok := strings.Cut(name, "/"); ok {
			key = snapshot.Key{Namespace: ns, Name: name}
		}
		if obj := blank(kind); obj != nil {
			k, _ := snapshot.KindOf(obj)
			c = c.Without(k, key)
		}
	}
	return c
}

// Objects returns what of a text, whose documents are parted as in a scenario,
// can be read as an object: seeds and food for fuzz targets.
func Objects(text string) (list []snapshot.Object) {
	for doc := range strings.SplitSeq("\n"+strings.ReplaceAll(text, "---- ", "---\n#"), "\n---\n") {
		var kind struct{ Kind string }
		if yaml.Unmarshal([]byte(doc), &kind) != nil {
			continue
		}
		if obj := blank(kind.Kind); obj != nil && yaml.Unmarshal([]byte(doc), obj) == nil {
			list = append(list, obj)
		}
	}
	return list
}

// blank returns an empty object of a kind, or nil if a Cluster holds none.
func blank(kind string) snapshot.Object {
	all := []snapshot.Object{
		&corev1.Service{}, &discoveryv1.EndpointSlice{}, &corev1.Node{}, &corev1.Namespace{}, &corev1.Secret{},
		&corev1.ConfigMap{}, &networkingv1.Ingress{}, &networkingv1.IngressClass{}, &v1alpha1.IPAddressPool{},
		&v1alpha1.L2Advertisement{}, &v1alpha1.BGPAdvertisement{}, &v1alpha1.BGPPeer{}, &v1alpha1.BFDProfile{},
		&v1alpha1.Community{}, &v1alpha1.SpeakerStatus{},
	}
	for _, obj := range all {
		if k, _ := snapshot.KindOf(obj); k.String() == kind {
			return obj
		}
	}
	return nil
}

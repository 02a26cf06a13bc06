package cluster_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.uber.org/goleak"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster"
	"quayside.io/cluster/manifest"
	"quayside.io/cluster/snapshot"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const webService = `
apiVersion: v1
kind: Service
metadata:
  name: web
  annotations: {quayside.io/address-pool: main, other: x}
spec: {type: LoadBalancer, ports: [{port: 80}]}
`

func write(t *testing.T, file, text string) string {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// open reads paths and follows them until the test ends.
func open(t *testing.T, paths ...string) *cluster.Files {
	t.Helper()
	f, err := cluster.NewFiles(paths, nil, cluster.FilesOptions{NodeName: "here"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return f
}

// until waits for a snapshot that satisfies ok.
func until(t *testing.T, f *cluster.Files, what string, ok func(*snapshot.Cluster) bool) *snapshot.Cluster {
	t.Helper()
	sub := f.Watch()
	defer sub.Stop()
	deadline := time.After(10 * time.Second)
	for {
		select {
		case <-sub.C():
			if c := f.Snapshot(); ok(c) {
				return c
			}
		case <-deadline:
			t.Fatalf("%s did not come to pass; faults: %v", what, f.Snapshot().Faults)
		}
	}
}

func web(c *snapshot.Cluster) *corev1.Service {
	s, _ := c.Services.Get(snapshot.Key{Namespace: "default", Name: "web"})
	return s
}

func TestFilesAreCompleteWhenOpened(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "b.yaml"), "apiVersion: v1\nkind: Service\nmetadata: {name: second}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: third, namespace: shop}\n")
	write(t, filepath.Join(dir, "a.yml"), "apiVersion: v1\nkind: Service\nmetadata: {name: first}\n")
	write(t, filepath.Join(dir, "notes.txt"), "not: [a manifest")
	write(t, filepath.Join(dir, ".hidden.yaml"), "not: [a manifest")
	f, err := cluster.NewFiles([]string{dir}, nil, cluster.FilesOptions{NodeName: "here"})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-f.Synced():
	default:
		t.Error("not synced when NewFiles returned")
	}
	c := f.Snapshot()
	if len(c.Faults) > 0 {
		t.Errorf("faults %v", c.Faults)
	}
	services := c.Services.Sorted()
	slices.SortFunc(services, func(a, b *corev1.Service) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	var names []string
	uids := map[string]bool{}
	for _, s := range services {
		names = append(names, s.Name)
		uids[string(s.UID)] = true
		if s.ResourceVersion == "" {
			t.Errorf("%s has no resourceVersion", s.Name)
		}
	}
	if want := []string{"first", "second", "third"}; !slices.Equal(names, want) {
		t.Errorf("by age %v, want the order of the files %v", names, want)
	}
	if len(uids) != 3 || uids[""] {
		t.Errorf("UIDs %v", uids)
	}
	node, ok := c.Nodes.Get(snapshot.Key{Name: "here"})
	if !ok || c.Nodes.Len() != 1 {
		t.Errorf("%d nodes; the machine is among them: %v", c.Nodes.Len(), ok)
	} else if len(node.Status.Addresses) < 2 {
		t.Errorf("the machine has the addresses %v only", node.Status.Addresses)
	}
	if _, ok := c.Namespaces.Get(snapshot.Key{Name: "shop"}); !ok {
		t.Error("no Namespace for shop")
	}
	if class, ok := c.IngressClasses.Get(snapshot.Key{Name: "quayside"}); !ok || class.Spec.Controller != "quayside.io/ingress" {
		t.Error("no IngressClass quayside")
	}
}

func TestMissingPathIsAnError(t *testing.T) {
	if _, err := cluster.NewFiles([]string{filepath.Join(t.TempDir(), "no.yaml")}, nil, cluster.FilesOptions{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want that the file does not exist", err)
	}
}

func TestStatusSurvivesReload(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "web.yaml"), webService)
	f := open(t, file)
	s := web(f.Snapshot()).DeepCopy()
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
	s.Annotations["quayside.io/ip-allocated-from-pool"] = "main"
	s.Annotations["other"] = "not ours to write"
	s.Spec.Ports[0].Port = 99
	if err := f.UpdateStatus(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	now := web(f.Snapshot())
	if len(now.Status.LoadBalancer.Ingress) != 1 || now.Annotations["quayside.io/ip-allocated-from-pool"] != "main" {
		t.Fatalf("not in the snapshot when UpdateStatus returned: %+v", now)
	}
	if now.Annotations["other"] != "x" || now.Spec.Ports[0].Port != 80 {
		t.Errorf("UpdateStatus wrote more than the status: %+v", now)
	}
	if err := f.UpdateStatus(t.Context(), s); !errors.Is(err, cluster.ErrStale) {
		t.Errorf("writing from an old version: %v, want ErrStale", err)
	}

	write(t, file, strings.Replace(webService, "quayside.io/address-pool: main, other: x", "other: z", 1))
	c := until(t, f, "the new annotation", func(c *snapshot.Cluster) bool { return web(c).Annotations["other"] == "z" })
	after := web(c)
	if len(after.Status.LoadBalancer.Ingress) != 1 || after.Annotations["quayside.io/ip-allocated-from-pool"] != "main" {
		t.Errorf("the reload undid what was written: %+v", after)
	}
	if _, ok := after.Annotations["quayside.io/address-pool"]; ok {
		t.Error("an annotation that left the file is still there")
	}
	if after.UID != s.UID || after.CreationTimestamp != s.CreationTimestamp {
		t.Error("the reload changed identity or age")
	}

	// A status that the file itself changes counts as the file's.
	write(t, file, webService+"status: {loadBalancer: {ingress: [{ip: 10.0.0.1}]}}\n")
	until(t, f, "the file's status", func(c *snapshot.Cluster) bool {
		in := web(c).Status.LoadBalancer.Ingress
		return len(in) == 1 && in[0].IP == "10.0.0.1"
	})
}

func TestLastGoodVersionStaysInForce(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "web.yaml"), webService)
	f := open(t, file)
	write(t, file, strings.Replace(webService, "ports:", "prots:", 1))
	c := until(t, f, "a fault", func(c *snapshot.Cluster) bool { return len(c.Faults) == 1 })
	fault := c.Faults[0].String()
	for _, part := range []string{file, "Unreadable", "document 1", "line 7", `unknown field "spec.prots"`, "last good version"} {
		if !strings.Contains(fault, part) {
			t.Errorf("the fault %q does not name %q", fault, part)
		}
	}
	if s := web(c); s == nil || len(s.Spec.Ports) != 1 {
		t.Errorf("the last good version is not in force: %+v", s)
	}
	write(t, file, strings.Replace(webService, "port: 80", "port: 81", 1))
	until(t, f, "mended", func(c *snapshot.Cluster) bool { return len(c.Faults) == 0 && web(c).Spec.Ports[0].Port == 81 })
}

func TestABrokenDocumentAtFirstLeavesTheOthers(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "web.yaml"), "kind: [\n---"+webService)
	f := open(t, file)
	if c := f.Snapshot(); web(c) == nil || len(c.Faults) != 1 || strings.Contains(c.Faults[0].Message, "last good") {
		t.Errorf("service %v, faults %v", web(c), c.Faults)
	}
}

func TestFilesComeAndGoInAFolder(t *testing.T) {
	dir := t.TempDir()
	f := open(t, dir)
	file := write(t, filepath.Join(dir, "web.yaml"), webService)
	until(t, f, "a new file", func(c *snapshot.Cluster) bool { return web(c) != nil })

	// As an editor does it: the new text takes the old one's name.
	write(t, filepath.Join(dir, ".web.yaml.swp"), strings.Replace(webService, "port: 80", "port: 82", 1))
	if err := os.Rename(filepath.Join(dir, ".web.yaml.swp"), file); err != nil {
		t.Fatal(err)
	}
	until(t, f, "a renamed file", func(c *snapshot.Cluster) bool { return web(c).Spec.Ports[0].Port == 82 })

	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	until(t, f, "a deleted file", func(c *snapshot.Cluster) bool { return web(c) == nil })
}

// A folder that cannot be read says nothing about its files: a share that is away for a
// moment, or one that is being replaced, takes no Service away.
func TestAFolderThatIsAway(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "manifests")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "web.yaml"), webService)
	f := open(t, dir)
	away := dir + "-away"
	if err := os.Rename(dir, away); err != nil {
		t.Fatal(err)
	}
	c := until(t, f, "a fault, or a Service that goes", func(c *snapshot.Cluster) bool { return len(c.Faults) > 0 || web(c) == nil })
	if web(c) == nil {
		t.Fatal("the Service went away with its folder")
	}
	if p := c.Faults[0]; p.Object.Name != dir || !strings.Contains(p.Message, "stays in force") {
		t.Errorf("fault %v", p)
	}
	write(t, filepath.Join(away, "web.yaml"), strings.Replace(webService, "port: 80", "port: 85", 1))
	if err := os.Rename(away, dir); err != nil {
		t.Fatal(err)
	}
	until(t, f, "what the folder says now", func(c *snapshot.Cluster) bool {
		return web(c) != nil && web(c).Spec.Ports[0].Port == 85 && len(c.Faults) == 0
	})
}

// What hinders to read a file may end where no event tells of it.
func TestAFileThatCannotBeReadIsTriedAgain(t *testing.T) {
	dir, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "web.yaml")
	f := open(t, dir)
	write(t, filepath.Join(dir, "bad.yaml"), "no manifest")
	until(t, f, "the first fault", func(c *snapshot.Cluster) bool { return len(c.Faults) == 1 })
	if err := os.Symlink(elsewhere, elsewhere); err != nil { // it leads to itself
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, filepath.Join(dir, "web.yaml")); err != nil {
		t.Fatal(err)
	}
	until(t, f, "the fault", func(c *snapshot.Cluster) bool { return len(c.Faults) == 2 })
	if err := os.Rename(write(t, elsewhere+".new", webService), elsewhere); err != nil {
		t.Fatal(err)
	}
	until(t, f, "the Service", func(c *snapshot.Cluster) bool { return web(c) != nil && len(c.Faults) == 1 })
}

// A kubelet mounts a ConfigMap as links through "..data", and changes it by
// letting that link lead elsewhere.
func TestMountedConfigMap(t *testing.T) {
	for _, what := range []string{".", "web.yaml"} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			for name, port := range map[string]string{"..one": "80", "..two": "83"} {
				if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
					t.Fatal(err)
				}
				write(t, filepath.Join(dir, name, "web.yaml"), strings.Replace(webService, "port: 80", "port: "+port, 1))
			}
			link := func(to, name string) {
				if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
			link("..one", "..data")
			link(filepath.Join("..data", "web.yaml"), "web.yaml")
			f := open(t, filepath.Join(dir, what))
			if port := web(f.Snapshot()).Spec.Ports[0].Port; port != 80 {
				t.Fatalf("port %d at first", port)
			}
			link("..two", "..tmp")
			if err := os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")); err != nil {
				t.Fatal(err)
			}
			until(t, f, "the other text", func(c *snapshot.Cluster) bool { return web(c).Spec.Ports[0].Port == 83 })
		})
	}
}

func TestAnEmptiedFileIsNotBelievedAtOnce(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "web.yaml"), webService)
	f := open(t, file)
	emptied := time.Now()
	write(t, file, "") // an editor truncates…
	time.Sleep(70 * time.Millisecond)
	write(t, filepath.Join(dir, "other.yaml"), "") // …while somebody writes another file…
	time.Sleep(70 * time.Millisecond)
	write(t, file, strings.Replace(webService, "port: 80", "port: 84", 1)) // …and takes its time to write
	took := time.Since(emptied)
	var gone bool
	until(t, f, "the new text", func(c *snapshot.Cluster) bool {
		gone = gone || web(c) == nil
		return web(c) != nil && web(c).Spec.Ports[0].Port == 84
	})
	// Where the machine stood still the file was empty for longer than is bridged.
	if gone && took < 250*time.Millisecond {
		t.Errorf("the Service went away while its file was being written, in %v", took)
	}
	write(t, file, "# nothing is wanted any more\n")
	until(t, f, "an emptied file", func(c *snapshot.Cluster) bool { return web(c) == nil })
}

func TestTwoFilesWithOneObject(t *testing.T) {
	dir := t.TempDir()
	a := write(t, filepath.Join(dir, "a.yaml"), webService)
	write(t, filepath.Join(dir, "b.yaml"), strings.Replace(webService, "port: 80", "port: 85", 1))
	f := open(t, dir)
	c := f.Snapshot()
	if web(c).Spec.Ports[0].Port != 80 || len(c.Faults) != 1 || !strings.Contains(c.Faults[0].Message, a) {
		t.Errorf("port %d, faults %v", web(c).Spec.Ports[0].Port, c.Faults)
	}
}

func TestProgramPutsAndDeletes(t *testing.T) {
	embedded := fstest.MapFS{"demo/web.yaml": {Data: []byte(webService)}}
	f, err := cluster.NewFiles(nil, []fs.FS{embedded}, cluster.FilesOptions{NodeName: "here"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	defer func() { stop(); <-done }()

	if web(f.Snapshot()) == nil {
		t.Fatal("the embedded Service is missing")
	}
	mine := web(f.Snapshot()).DeepCopy()
	mine.Spec.Ports[0].Port = 90
	f.Put(mine)
	until(t, f, "what was put", func(c *snapshot.Cluster) bool { return web(c).Spec.Ports[0].Port == 90 })
	f.Delete(snapshot.Service, snapshot.KeyOf(mine))
	until(t, f, "what is embedded", func(c *snapshot.Cluster) bool { return web(c).Spec.Ports[0].Port == 80 })
}

// A snapshot that says it is complete holds what was put before Run.
func TestWhatIsPutBeforeRunIsThereAtOnce(t *testing.T) {
	f, err := cluster.NewFiles(nil, nil, cluster.FilesOptions{NodeName: "here"})
	if err != nil {
		t.Fatal(err)
	}
	decoded := manifest.Decode("web.yaml", []byte(webService))
	f.Put(decoded.Objects...)
	if web(f.Snapshot()) == nil {
		t.Fatal("what was put is missing from a complete snapshot")
	}
	f.Delete(snapshot.Service, snapshot.KeyOf(web(f.Snapshot())))
	if web(f.Snapshot()) != nil {
		t.Fatal("what was deleted is still in the snapshot")
	}
}

func TestSpeakerStatusIsCreated(t *testing.T) {
	f := open(t)
	s := &v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: "here"}}
	s.Status.AnnouncingCount = 1
	if err := f.UpdateStatus(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	got, ok := f.Snapshot().SpeakerStatuses.Get(snapshot.Key{Name: "here"})
	if !ok || got.Status.AnnouncingCount != 1 {
		t.Fatalf("have %+v", got)
	}
	next := got.DeepCopy()
	next.Status.AnnouncingCount = 2
	if err := f.UpdateStatus(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if got, _ := f.Snapshot().SpeakerStatuses.Get(snapshot.Key{Name: "here"}); got.Status.AnnouncingCount != 2 {
		t.Errorf("have %+v", got)
	}
	same := func() string {
		got, _ := f.Snapshot().SpeakerStatuses.Get(snapshot.Key{Name: "here"})
		return got.ResourceVersion
	}
	before := same()
	got, _ = f.Snapshot().SpeakerStatuses.Get(snapshot.Key{Name: "here"})
	if err := f.UpdateStatus(t.Context(), got.DeepCopy()); err != nil || same() != before {
		t.Errorf("writing what is there: error %v, version %s -> %s", err, before, same())
	}
}

func TestEventsAreCountedAndBounded(t *testing.T) {
	f := open(t)
	about := snapshot.Ref{Kind: "Service", Key: snapshot.Key{Namespace: "default", Name: "web"}}
	for i := range 300 {
		f.Event(about, "Normal", "Once", strings.Repeat("x", i))
	}
	f.Event(about, "Warning", "Twice", "m")
	f.Event(about, "Warning", "Twice", "m")
	events := f.Events()
	last := events[len(events)-1]
	if len(events) > 256 || last.Reason != "Twice" || last.Count != 2 {
		t.Errorf("%d events, the last %+v", len(events), last)
	}
}

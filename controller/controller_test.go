package controller_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
	"quayside.io/controller"
	"quayside.io/controller/assign"
	"quayside.io/proxy/route"
	"quayside.io/speaker/announce"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const world = `
apiVersion: v1
kind: Node
metadata: {name: here}
status: {addresses: [{type: InternalIP, address: 10.0.0.1}]}
---
apiVersion: quayside.io/v1alpha1
kind: IPAddressPool
metadata: {name: main}
spec: {addresses: [192.0.2.0/30]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: LoadBalancer, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: far, annotations: {quayside.io/loadBalancerIPs: 203.0.113.1}}
spec: {type: LoadBalancer, ports: [{port: 80}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: lost}
spec: {ingressClassName: quayside, defaultBackend: {service: {name: nowhere, port: {number: 80}}}}
---
apiVersion: v1
kind: Secret
metadata: {name: s}
stringData: {tls.key: very-secret}
`

// manifests starts a cluster of files that lives until the test ends.
func manifests(t *testing.T, text string) *cluster.Files {
	t.Helper()
	file := filepath.Join(t.TempDir(), "world.yaml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := cluster.NewFiles([]string{file}, nil, cluster.FilesOptions{NodeName: "here"})
	if err != nil {
		t.Fatal(err)
	}
	run(t, f.Run)
	return f
}

// run runs task until the test ends.
func run(t *testing.T, task func(context.Context) error) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- task(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func start(t *testing.T, o controller.Options) *controller.Controller {
	t.Helper()
	o.Assign.DefaultLoadBalancer = true
	h, err := controller.New(o)
	if err != nil {
		t.Fatal(err)
	}
	run(t, h.Run)
	return h
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for begin := time.Now(); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Since(begin) > 30*time.Second {
			t.Fatalf("%s did not come to pass", what)
		}
	}
}

func address(f *cluster.Files, name string) string {
	s, ok := f.Snapshot().Services.Get(snapshot.Key{Namespace: "default", Name: name})
	if !ok || len(s.Status.LoadBalancer.Ingress) == 0 {
		return ""
	}
	return s.Status.LoadBalancer.Ingress[0].IP
}

func told(f *cluster.Files, object, reason string) int {
	n := 0
	for _, e := range f.Events() {
		if e.About.String() == object && e.Reason == reason {
			n += e.Count
		}
	}
	return n
}

func TestServicesGetAddressesAndProblemsAreTold(t *testing.T) {
	f := manifests(t, world)
	registry := prometheus.NewRegistry()
	h := start(t, controller.Options{
		Source: f.Source, Writer: f, Registerer: registry,
		Announce: &announce.Options{}, Routes: &route.Options{},
	})
	eventually(t, "an address for web", func() bool { return address(f, "web") == "192.0.2.0" })
	if h.Ready() != nil {
		t.Error("not ready although it works")
	}
	eventually(t, "a problem of each compiler", func() bool {
		var far, lost bool
		for _, p := range h.Problems() {
			far = far || p.Object.String() == "Service default/far"
			lost = lost || p.Object.String() == "Ingress default/lost"
		}
		return far && lost
	})
	var reason string
	for _, p := range h.Problems() {
		if p.Object.String() == "Service default/far" {
			reason = p.Reason
		}
	}
	eventually(t, "an event about far", func() bool { return told(f, "Service default/far", reason) > 0 })
	if a := address(f, "far"); a != "" {
		t.Errorf("far has the address %s, which is in no pool", a)
	}

	// The rest goes on, and what was told once is not told again.
	before := told(f, "Service default/far", reason)
	late := &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80, Protocol: "TCP"}},
		IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}}}
	late.Name, late.Namespace = "late", "default"
	f.Put(late)
	eventually(t, "an address for late", func() bool { return address(f, "late") == "192.0.2.1" })
	if n := told(f, "Service default/far", reason); n != before {
		t.Errorf("the same problem was told %d times more", n-before)
	}

	eventually(t, "metrics", func() bool {
		return gauge(t, registry, "quayside_pool_addresses", "ipv4", "main", "assigned") == 2 &&
			gauge(t, registry, "quayside_pool_addresses", "ipv4", "main", "available") == 2 &&
			gauge(t, registry, "quayside_problems", "controller", "Service", reason) == 1 &&
			gauge(t, registry, "quayside_leading") == 1
	})

	text, err := json.Marshal([]any{h.State(), h.Problems()})
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"very-secret", base64.StdEncoding.EncodeToString([]byte("very-secret"))} {
		if strings.Contains(string(text), secret) {
			t.Error("the state holds the value of a Secret")
		}
	}
	for _, part := range []string{`"kind":"controller"`, `"leading":true`, `"object":"Service default/far"`, `"address":"192.0.2.0","service":"default/web"`} {
		if !strings.Contains(string(text), part) {
			t.Errorf("the state lacks %s: %s", part, text)
		}
	}
}

// gauge returns a gauge by the values of its labels, in the order of their names.
func gauge(t *testing.T, registry *prometheus.Registry, name string, values ...string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var have []string
			for _, l := range m.GetLabel() {
				have = append(have, l.GetValue())
			}
			if family.GetName() == name && slices.Equal(have, values) {
				return m.GetGauge().GetValue()
			}
		}
	}
	return -1
}

// stubborn refuses writes about one Service, and counts them.
type stubborn struct {
	*cluster.Files
	mu      sync.Mutex
	name    string
	refused int
}

func (w *stubborn) UpdateStatus(ctx context.Context, o snapshot.Object) error {
	w.mu.Lock()
	refuse := o.GetName() == w.name
	if refuse {
		w.refused++
	}
	w.mu.Unlock()
	if refuse {
		return fmt.Errorf("%w: an admission policy says no", cluster.ErrRefused)
	}
	return w.Files.UpdateStatus(ctx, o)
}

func (w *stubborn) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refused
}

func (w *stubborn) relent() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.name = ""
}

func TestARefusedWriteIsTriedAgainAndStopsNobody(t *testing.T) {
	f := manifests(t, world)
	w := &stubborn{Files: f, name: "web"}
	began := time.Now()
	h := start(t, controller.Options{Source: f.Source, Writer: w})
	eventually(t, "a first attempt", func() bool { return w.count() > 0 })
	// Other objects keep changing; that must not multiply the attempts.
	for i := range 50 {
		n := &corev1.Namespace{}
		n.Name = "ns-" + string(rune('a'+i%26))
		n.Labels = map[string]string{"i": strings.Repeat("x", i)}
		f.Put(n)
		time.Sleep(2 * time.Millisecond)
	}
	if a := address(f, "web"); a != "" {
		t.Fatalf("web has %s although its writes are refused", a)
	}
	reported := told(f, "Service default/web", "WriteRefused") > 0
	n, took := w.count(), time.Since(began)
	most := 1
	for pause, at := 100*time.Millisecond, 100*time.Millisecond; at <= took; at += pause {
		most, pause = most+1, 2*pause
	}
	if n > most {
		t.Errorf("%d attempts within %v, want one and retries after growing pauses: %d at most", n, took, most)
	}
	if reported && n < 4 {
		t.Errorf("it was told after %d attempts", n)
	}
	eventually(t, "an event about it", func() bool { return told(f, "Service default/web", "WriteRefused") > 0 })
	w.relent()
	eventually(t, "an address for web", func() bool { return address(f, "web") != "" })
	eventually(t, "the end of the problem", func() bool {
		return !slices.ContainsFunc(h.Problems(), func(p snapshot.Problem) bool { return p.Reason == "WriteRefused" })
	})
}

// rival is a writer beside whom another controller runs, which takes away every
// address at once that it did not give.
type rival struct {
	*cluster.Files
	writes atomic.Int64
	gone   atomic.Bool
}

func (w *rival) UpdateStatus(ctx context.Context, o snapshot.Object) error {
	err := w.Files.UpdateStatus(ctx, o)
	given, ok := o.(*corev1.Service)
	if !ok || err != nil || w.gone.Load() || len(given.Status.LoadBalancer.Ingress) == 0 {
		return err
	}
	w.writes.Add(1)
	now, _ := w.Snapshot().Services.Get(snapshot.KeyOf(given))
	undone := now.DeepCopy()
	undone.Status.LoadBalancer.Ingress = nil
	return w.Files.UpdateStatus(ctx, undone)
}

func TestWhoUndoesOurWritesIsToldAndNotOutdone(t *testing.T) {
	f := manifests(t, world)
	w := &rival{Files: f}
	start(t, controller.Options{Source: f.Source, Writer: w})
	eventually(t, "an event about who undoes it", func() bool { return told(f, "Service default/web", "Contested") > 0 })
	if n := w.writes.Load(); n > 10 {
		t.Errorf("%d writes until it was told", n)
	}
	w.gone.Store(true)
	eventually(t, "an address for web", func() bool { return address(f, "web") != "" })
}

func TestOnlyALeaderWrites(t *testing.T) {
	f := manifests(t, world)
	elected := make(chan struct{})
	var prepared sync.WaitGroup
	prepared.Add(2)
	tries := 0
	h := start(t, controller.Options{
		Source: f.Source, Writer: f, Assign: assign.Options{},
		Lead: func(ctx context.Context, lead func(context.Context) error) error {
			select {
			case <-elected:
				return lead(ctx)
			case <-ctx.Done():
				return nil
			}
		},
		Prepare: func(context.Context) error {
			prepared.Done()
			if tries++; tries == 1 {
				return errors.New("not yet")
			}
			return nil
		},
	})
	time.Sleep(50 * time.Millisecond)
	if a := address(f, "web"); a != "" {
		t.Fatalf("web has %s although nobody leads", a)
	}
	if h.Ready() != nil {
		t.Error("a standby that has seen the cluster is not ready")
	}
	close(elected)
	eventually(t, "an address for web", func() bool { return address(f, "web") != "" })
	prepared.Wait()
}

func TestMembersKeysDiffer(t *testing.T) {
	a, b := controller.NewMembersKey(), controller.NewMembersKey()
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(string(a), "\n"))
	if err != nil || len(raw) != 32 {
		t.Errorf("%d bytes, error %v", len(raw), err)
	}
	if string(a) == string(b) {
		t.Error("two keys are the same")
	}
}

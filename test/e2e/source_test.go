package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"quayside.io/controller/api/v1alpha1"
	source "quayside.io/controller/cluster"
	"quayside.io/controller/snapshot"
	"quayside.io/test/lab"
)

// wire is a TCP relay between this process and the API server. It can fall
// silent in one direction, as a network does, without closing a connection.
type wire struct {
	lab  *lab.Cluster
	mute atomic.Bool // drop what the server says

	mu     sync.Mutex
	conns  []net.Conn
	closed bool
}

// newWire returns a wire and a kubeconfig that leads through it.
func newWire(t *testing.T, c *lab.Cluster) (*wire, string) {
	t.Helper()
	w := &wire{lab: c}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(c.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	direct := ""
	for line := range strings.Lines(string(text)) {
		if url, ok := strings.CutPrefix(strings.TrimSpace(line), "server: "); ok {
			direct = url
		}
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	relayed := strings.ReplaceAll(string(text), direct, "https://"+l.Addr().String())
	if err := os.WriteFile(path, []byte(relayed), 0o600); err != nil {
		t.Fatal(err)
	}
	var relays sync.WaitGroup
	relays.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			relays.Go(func() { w.relay(conn, strings.TrimPrefix(direct, "https://")) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		w.mu.Lock()
		w.closed = true // for a connection that is just being made
		w.mu.Unlock()
		w.cut()
		relays.Wait()
	})
	return w, path
}

func (w *wire) relay(client net.Conn, addr string) {
	defer client.Close()
	server, err := w.lab.APIServer().Dial(context.Background(), "tcp", addr)
	if err != nil {
		return
	}
	defer server.Close()
	w.mu.Lock()
	closed := w.closed
	w.conns = append(w.conns, client, server)
	w.mu.Unlock()
	if closed {
		return
	}
	go func() { _, _ = io.Copy(server, client); server.Close() }()
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		if !w.mute.Load() {
			if _, err := client.Write(buffer[:n]); err != nil {
				return
			}
		}
	}
}

// cut resets every connection.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		c.Close()
	}
	w.conns = nil
}

// unmute lets the server be heard again. What it said meanwhile is lost, so
// that the old connections are of no use.
func (w *wire) unmute() { w.mute.Store(false); w.cut() }

// connect returns a running source of Services through kubeconfig.
func connect(t *testing.T, kubeconfig string) *source.API {
	t.Helper()
	api, err := source.NewAPI(source.APIOptions{
		Kubeconfig: kubeconfig, Component: "test", Kinds: []snapshot.Kind{snapshot.Service, snapshot.Node},
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- api.Run(ctx) }()
	t.Cleanup(func() {
		begin := time.Now()
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		} else if d := time.Since(begin); d > 2*time.Second {
			t.Errorf("Run ended %v after its context", d)
		}
	})
	select {
	case <-api.Synced():
	case <-time.After(20 * time.Second):
		t.Fatalf("not synced; faults %v", api.Snapshot().Faults)
	}
	return api
}

const plainService = `
apiVersion: v1
kind: Service
metadata:
  name: web
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: "kept by the server"
    other: kept
spec: {type: LoadBalancer, allocateLoadBalancerNodePorts: false, ports: [{port: 80}]}
`

func serviceIn(api *source.API, c *lab.Cluster) *corev1.Service {
	s, _ := api.Snapshot().Services.Get(snapshot.Key{Namespace: c.Namespace(), Name: "web"})
	return s
}

// withAddress is s as it would be once given ip.
func withAddress(s *corev1.Service, ip string) *corev1.Service {
	s = s.DeepCopy()
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: ip}}
	s.Annotations["quayside.io/ip-allocated-from-pool"] = "main"
	return s
}

func awaitService(c *lab.Cluster, api *source.API, what string, ok func(*corev1.Service) bool) {
	c.Eventually(20*time.Second, func() error {
		if s := serviceIn(api, c); !ok(s) {
			return fmt.Errorf("%s: the snapshot has %v; faults %v", what, s, api.Snapshot().Faults)
		}
		return nil
	})
}

func exists(s *corev1.Service) bool { return s != nil }

func TestSourceWritesOnlyWhatIsOurs(t *testing.T) {
	c := bareCluster(t, "nftables")
	_, kubeconfig := newWire(t, c)
	api := connect(t, kubeconfig)
	c.Apply(plainService)
	awaitService(c, api, "a new Service", exists)
	s := serviceIn(api, c)
	if s.ManagedFields != nil || s.Annotations[corev1.LastAppliedConfigAnnotation] != "" {
		t.Error("the snapshot holds what nobody reads")
	}
	given := withAddress(s, "10.77.0.240")
	if err := api.UpdateStatus(t.Context(), given); err != nil {
		t.Fatal(err)
	}
	now := serviceIn(api, c)
	if len(now.Status.LoadBalancer.Ingress) != 1 || now.ResourceVersion == s.ResourceVersion {
		t.Errorf("the snapshot does not show what was written: %+v", now.Status)
	}
	if err := api.UpdateStatus(t.Context(), given); !errors.Is(err, source.ErrStale) {
		t.Errorf("writing from an old version: %v, want ErrStale", err)
	}
	real, err := c.Kube().CoreV1().Services(c.Namespace()).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for k, want := range map[string]string{
		corev1.LastAppliedConfigAnnotation: "kept by the server", "other": "kept", "quayside.io/ip-allocated-from-pool": "main",
	} {
		if got := real.Annotations[k]; got != want {
			t.Errorf("annotation %s is %q, want %q", k, got, want)
		}
	}
	if in := real.Status.LoadBalancer.Ingress; len(in) != 1 || in[0].IP != "10.77.0.240" {
		t.Errorf("status %+v", real.Status)
	}

	// Taking away must reach the server too.
	freed := now.DeepCopy()
	freed.Status.LoadBalancer.Ingress = nil
	delete(freed.Annotations, "quayside.io/ip-allocated-from-pool")
	if err := api.UpdateStatus(t.Context(), freed); err != nil {
		t.Fatal(err)
	}
	real, err = c.Kube().CoreV1().Services(c.Namespace()).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, still := real.Annotations["quayside.io/ip-allocated-from-pool"]; still || len(real.Status.LoadBalancer.Ingress) > 0 {
		t.Errorf("freed, yet the server has %v and %+v", real.Annotations, real.Status)
	}

	about := snapshot.RefOf(now)
	for range 3 {
		api.Event(about, "Warning", "Tested", "an event for the owner")
	}
	c.Eventually(10*time.Second, func() error {
		events, err := c.Kube().EventsV1().Events(c.Namespace()).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		n := 0
		for _, e := range events.Items {
			if e.Regarding.UID == now.UID && e.Reason == "Tested" && e.Note == "an event for the owner" {
				n++
			}
		}
		if n != 1 {
			return fmt.Errorf("%d events about the Service, want 1 for three that are the same", n)
		}
		return nil
	})

	c.Delete(plainService)
	awaitService(c, api, "a deletion", func(s *corev1.Service) bool { return s == nil })
}

func TestSourceRemembersWritesWithoutAnswer(t *testing.T) {
	c := bareCluster(t, "nftables")
	w, kubeconfig := newWire(t, c)
	api := connect(t, kubeconfig)
	c.Apply(plainService)
	awaitService(c, api, "a new Service", exists)
	before := serviceIn(api, c)

	w.mute.Store(true)
	begin := time.Now()
	err := api.UpdateStatus(t.Context(), withAddress(before, "10.77.0.241"))
	if err == nil || errors.Is(err, source.ErrStale) {
		t.Fatalf("a write without an answer returned %v", err)
	}
	if d := time.Since(begin); d > source.WriteDeadline+time.Second {
		t.Errorf("it took %v, more than the deadline", d)
	}
	if in := api.Inflight(); len(in) != 1 || in[0].GetName() != "web" {
		t.Fatalf("in flight: %v, want the Service", in)
	}
	real, err := c.Kube().CoreV1().Services(c.Namespace()).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(real.Status.LoadBalancer.Ingress) != 1 {
		t.Fatalf("the server did not get the write, so the test shows nothing: %+v", real.Status)
	}
	w.unmute()
	awaitService(c, api, "the write", func(s *corev1.Service) bool { return len(s.Status.LoadBalancer.Ingress) == 1 })
	if in := api.Inflight(); len(in) != 0 {
		t.Errorf("in flight although the snapshot shows it: %v", in)
	}
}

// leader is a candidate that says when it leads.
type leader struct {
	began chan time.Time
	stop  context.CancelFunc
	ended chan error
}

func stand(t *testing.T, api *source.API, namespace, identity string) *leader {
	ctx, stop := context.WithCancel(t.Context())
	l := &leader{began: make(chan time.Time, 10), stop: stop, ended: make(chan error, 1)}
	go func() {
		l.ended <- api.Lead(ctx, source.LeaseOptions{
			Namespace: namespace, Name: "test", Identity: identity,
			Duration: 5 * time.Second, Renew: 3 * time.Second, Retry: time.Second,
		}, func(ctx context.Context) error {
			l.began <- time.Now()
			<-ctx.Done()
			return nil
		})
	}()
	return l
}

func (l *leader) end(t *testing.T) {
	l.stop()
	if err := <-l.ended; err != nil {
		t.Errorf("Lead: %v", err)
	}
}

func TestLeadershipPassesOn(t *testing.T) {
	c := cluster(t, "nftables")
	w, kubeconfig := newWire(t, c)
	_, other := newWire(t, c)
	_, third := newWire(t, c)
	begin := time.Now()
	one := stand(t, connect(t, kubeconfig), c.Namespace(), "one")
	first := <-one.began
	if d := first.Sub(begin); d > 4*time.Second {
		t.Errorf("a fresh Lease was waited for: %v", d)
	}
	two := stand(t, connect(t, other), c.Namespace(), "two")
	select {
	case <-two.began:
		t.Fatal("two leaders at once")
	case <-time.After(2 * time.Second):
	}

	// A leader that goes politely leaves no gap.
	begin = time.Now()
	one.end(t)
	if d := (<-two.began).Sub(begin); d > 3*time.Second {
		t.Errorf("the next one led %v after a polite end, want about one retry", d)
	} else {
		t.Logf("polite: %v", d.Round(time.Millisecond))
	}
	two.end(t)

	// One that falls silent is waited for, and its last writes too.
	one = stand(t, connect(t, kubeconfig), c.Namespace(), "one again")
	<-one.began
	two = stand(t, connect(t, third), c.Namespace(), "three")
	time.Sleep(1500 * time.Millisecond) // it has seen who leads
	begin = time.Now()
	w.mute.Store(true)
	d := (<-two.began).Sub(begin)
	t.Logf("silent: %v", d.Round(time.Millisecond))
	if least := 4*time.Second + source.WriteDeadline; d < least {
		t.Errorf("the next one led after %v, before the silent one's writes could have ended (%v)", d, least)
	}
	two.end(t)
	w.unmute()
	one.end(t)
}

// A change of the server's reaches the snapshot at once: this is the way that
// endpoints take.
func TestSourceIsPrompt(t *testing.T) {
	c := bareCluster(t, "nftables")
	_, kubeconfig := newWire(t, c)
	api := connect(t, kubeconfig)
	c.Apply(plainService)
	awaitService(c, api, "a new Service", exists)
	sub := api.Watch(snapshot.Service)
	defer sub.Stop()
	<-sub.C()
	var worst time.Duration
	for i := range 20 {
		patch := fmt.Sprintf(`{"metadata":{"labels":{"round":"%d"}}}`, i)
		if _, err := c.Kube().CoreV1().Services(c.Namespace()).Patch(t.Context(), "web", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		for serviceIn(api, c).Labels["round"] != fmt.Sprint(i) {
			select {
			case <-sub.C():
			case <-time.After(5 * time.Second):
				t.Fatal("the change did not come")
			}
		}
		worst = max(worst, time.Since(begin))
	}
	t.Logf("the slowest of 20 changes was seen %v after the server's answer", worst)
}

func TestSourceOutlivesAnOutage(t *testing.T) {
	c := bareCluster(t, "nftables")
	_, kubeconfig := newWire(t, c)
	api := connect(t, kubeconfig)
	c.Apply(plainService)
	awaitService(c, api, "a new Service", exists)
	services := api.Snapshot().Services.Len()
	c.APIServer().Stop()
	c.Eventually(20*time.Second, func() error {
		for _, f := range api.Snapshot().Faults {
			if f.Reason == source.Unreachable {
				return nil
			}
		}
		return fmt.Errorf("the outage is no fault: %v", api.Snapshot().Faults)
	})
	if n := api.Snapshot().Services.Len(); n != services {
		t.Errorf("%d Services without the server, %d with it: an outage took some away", n, services)
	}
	if err := c.APIServer().Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	up := time.Now()
	c.Delete(plainService)
	awaitService(c, api, "what happened after the outage", func(s *corev1.Service) bool { return s == nil })
	t.Logf("caught up %v after the server was ready", time.Since(up).Round(time.Millisecond))
	c.Eventually(10*time.Second, func() error {
		if f := api.Snapshot().Faults; len(f) > 0 {
			return fmt.Errorf("faults remain: %v", f)
		}
		return nil
	})
}

// lowly is the token of an account that may list Services but no ConfigMaps.
const lowly = "kube-proxy-of-the-lab"

func TestSourceNamesWhatItMayNotRead(t *testing.T) {
	c := cluster(t, "nftables")
	_, kubeconfig := newWire(t, c)
	text, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(t.TempDir(), "lowly")
	if err := os.WriteFile(own, []byte(regexp.MustCompile(`token: .*`).ReplaceAllString(string(text), "token: "+lowly)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, lenient := range []bool{false, true} {
		api, err := source.NewAPI(source.APIOptions{Kubeconfig: own, Lenient: lenient, Kinds: []snapshot.Kind{snapshot.Service, snapshot.ConfigMap}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- api.Run(ctx) }()
		c.Eventually(20*time.Second, func() error {
			f := api.Snapshot().Faults
			if len(f) != 1 || f[0].Reason != source.Forbidden || api.Snapshot().Services.Len() == 0 {
				return fmt.Errorf("faults %v, %d Services; want Services, and to be told that ConfigMaps are forbidden", f, api.Snapshot().Services.Len())
			}
			return nil
		})
		time.Sleep(50 * time.Millisecond)
		synced := false
		select {
		case <-api.Synced():
			synced = true
		default:
		}
		if synced != lenient {
			t.Errorf("lenient %v: synced %v", lenient, synced)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// The order of installation does not matter: the controller may start before
// its CustomResourceDefinitions are there.
func TestSourceFindsKindsThatComeLater(t *testing.T) {
	c := lab.New(t, lab.Nodes(1))
	_, kubeconfig := newWire(t, c)
	api, err := source.NewAPI(source.APIOptions{Kubeconfig: kubeconfig, Kinds: []snapshot.Kind{snapshot.Service, snapshot.IPAddressPool, snapshot.SpeakerStatus}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- api.Run(ctx) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	select {
	case <-api.Synced():
	case <-time.After(20 * time.Second):
		t.Fatalf("not synced without the definitions; faults %v", api.Snapshot().Faults)
	}
	if f := api.Snapshot().Faults; len(f) != 2 || f[0].Reason != source.KindMissing {
		t.Errorf("faults %v, want both kinds missing", f)
	}
	files, err := filepath.Glob("../../charts/quayside/crds/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no definitions in the chart: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c.Apply(string(text))
	}
	const pool = "{apiVersion: quayside.io/v1alpha1, kind: IPAddressPool, metadata: {name: late}, spec: {addresses: [192.0.2.0/24]}}"
	c.Eventually(20*time.Second, func() error { return c.TryApply(pool) })
	c.Eventually(20*time.Second, func() error {
		if now := api.Snapshot(); len(now.Faults) > 0 || now.IPAddressPools.Len() != 1 {
			return fmt.Errorf("faults %v, %d pools", now.Faults, now.IPAddressPools.Len())
		}
		return nil
	})

	// Statuses of custom resources: one that never had any, and one to create.
	p := api.Snapshot().IPAddressPools.Sorted()[0].DeepCopy()
	p.Status.AvailableIPv4 = 256
	if err := api.UpdateStatus(t.Context(), p); err != nil {
		t.Error(err)
	}
	status := &v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: "node1"}}
	status.Status.AnnouncingCount = 3
	if err := api.UpdateStatus(t.Context(), status); err != nil {
		t.Error(err)
	}
	got, ok := api.Snapshot().SpeakerStatuses.Get(snapshot.Key{Name: "node1"})
	if !ok || got.Status.AnnouncingCount != 3 {
		t.Errorf("SpeakerStatus %+v", got)
	}
	key := func() []byte { return []byte("made once\n") }
	for range 2 {
		if err := api.EnsureSecret(t.Context(), c.Namespace(), "members", "key", key); err != nil {
			t.Error(err)
		}
		key = func() []byte { return []byte("made twice\n") }
	}
	secret, err := c.Kube().CoreV1().Secrets(c.Namespace()).Get(t.Context(), "members", metav1.GetOptions{})
	if err != nil || string(secret.Data["key"]) != "made once\n" {
		t.Errorf("the Secret holds %q, error %v", secret.Data["key"], err)
	}
}

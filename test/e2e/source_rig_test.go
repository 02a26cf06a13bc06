package e2e

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	source "quayside.io/cluster"
	"quayside.io/cluster/snapshot"
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

// running runs what run does, until end is called.
func running(t *testing.T, run func(context.Context) error) (end func()) {
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	return func() {
		t.Helper()
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
}

// connect returns a running source of Services through kubeconfig.
func connect(t *testing.T, kubeconfig string) *source.API {
	t.Helper()
	api, err := source.NewAPI(source.APIOptions{
		Kubeconfig: source.Kubeconfig{File: kubeconfig}, Component: "test", Kinds: []snapshot.Kind{snapshot.Service, snapshot.Node},
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	end := running(t, api.Run)
	t.Cleanup(func() {
		begin := time.Now()
		end()
		if d := time.Since(begin); d > 10*time.Second {
			t.Errorf("Run ended %v after its context", d)
		}
	})
	select {
	case <-api.Synced():
	case <-time.After(settle):
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

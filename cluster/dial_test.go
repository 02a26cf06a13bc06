package cluster

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"quayside.io/test/netns"
)

// TestASilentAPIServerIsLeft: the machine of an API server dies while another
// answers at the same address, as behind a virtual address or the Service
// kubernetes. Both who only listens (a watch) and who asks (a lease) must find
// the other within seconds, and nobody leaves a server that lives and is quiet.
func TestASilentAPIServerIsLeft(t *testing.T) {
	if !netns.Inside(t, time.Minute, "nft") {
		return
	}
	netns.Sh(t, "ip link set lo up; nft add table inet dead; nft add chain inet dead in '{ type filter hook input priority 0; }'")
	server := newQuietServer(t)
	listener, asker, calm := server.client(t), server.client(t), server.client(t)
	ports := map[string]bool{}
	for _, c := range []*quietClient{listener, asker, calm} {
		c.listen(t)
		ports[c.port] = true
	}
	if len(ports) != 3 {
		t.Fatalf("three clients share the connections from ports %v", ports)
	}
	for _, c := range []*quietClient{listener, asker} {
		netns.Sh(t, fmt.Sprintf("nft add rule inet dead in tcp dport %[1]s drop; nft add rule inet dead in tcp sport %[1]s drop", c.port))
	}
	began := time.Now()
	within := unacknowledgedFor + 3*time.Second
	asked := make(chan error, 1)
	go func() {
		for {
			err := asker.ask(time.Second)
			if err == nil || time.Since(began) > within {
				asked <- err
				return
			}
		}
	}()
	select {
	case <-listener.ended:
	case <-time.After(within):
		t.Errorf("who listens has not noticed the death after %v", within)
	}
	if err := <-asked; err != nil {
		t.Errorf("who asks is still with the dead one after %v: %v", within, err)
	}
	t.Logf("both left it within %v", time.Since(began).Round(100*time.Millisecond))
	time.Sleep(time.Until(began.Add(within)))
	select {
	case <-calm.ended:
		t.Error("a server that is only quiet was left")
	default:
	}
}

// quietServer is an API server that answers every question but /watch, where it
// says hello and nothing more.
type quietServer struct{ *httptest.Server }

func newQuietServer(t *testing.T) quietServer {
	ended := make(chan struct{})
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, port, _ := net.SplitHostPort(r.RemoteAddr)
		fmt.Fprintln(w, port)
		if r.URL.Path == "/watch" {
			_ = http.NewResponseController(w).Flush()
			select {
			case <-ended:
			case <-r.Context().Done():
			}
		}
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(func() { close(ended); s.CloseClientConnections(); s.Close() })
	return quietServer{s}
}

// quietClient is a process of ours with one connection to the server.
type quietClient struct {
	rest  rest.Interface
	port  string        // of its first connection
	ended chan struct{} // closed when its watch ends
}

func (s quietServer) client(t *testing.T) *quietClient {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: a,
clusters: [{name: a, cluster: {server: %q, insecure-skip-tls-verify: true}}],
contexts: [{name: a, context: {cluster: a}}]}`, s.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := newClients(Kubeconfig{File: file}, "test", []schema.GroupVersion{corev1.SchemeGroupVersion})
	if err != nil {
		t.Fatal(err)
	}
	return &quietClient{rest: c.byGroup[corev1.SchemeGroupVersion], ended: make(chan struct{})}
}

// listen opens a watch, and returns when the server has said hello.
func (c *quietClient) listen(t *testing.T) {
	body, err := c.rest.Get().AbsPath("/watch").Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fscanln(body, &c.port); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(c.ended)
		_, _ = io.Copy(io.Discard, body)
		_ = body.Close()
	}()
}

// ask is one question with a deadline.
func (c *quietClient) ask(within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return c.rest.Get().AbsPath("/version").Do(ctx).Error()
}

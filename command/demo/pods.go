package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/snapshot"
)

// drainTime is how long a pod that is going away still answers: a kubelet
// gives it 30 s, a demo less.
const drainTime = 500 * time.Millisecond

// A deployment keeps replicas pods of one Service running.
type deployment struct {
	cluster  Cluster
	service  snapshot.Key
	replicas int
	address  func(pod int) netip.Addr
	pods     []*pod // oldest first
	started  int
	replaced atomic.Int64
	log      *slog.Logger
}

// A pod is an HTTP server on a loopback address, with an EndpointSlice of its
// own because each has a port of its own.
type pod struct {
	name   string
	at     netip.AddrPort
	server *http.Server
}

func (d *deployment) start() error {
	for range d.replicas {
		if err := d.add(); err != nil {
			return err
		}
	}
	return nil
}

func (d *deployment) add() error {
	address := d.address(d.started)
	d.started++
	p, err := startPod(fmt.Sprintf("%s-%d", d.service.Name, d.started), address, d.log)
	if err != nil {
		return fmt.Errorf("demo: start a pod of %s: %w", d.service, err)
	}
	d.pods = append(d.pods, p)
	d.cluster.Put(d.slice(p, true))
	return nil
}

// replaceOldest brings a new pod up before the oldest goes: that one is first
// marked as terminating, then gone from the Service, then stopped.
func (d *deployment) replaceOldest(ctx context.Context) error {
	if err := d.add(); err != nil {
		return err
	}
	old := d.pods[0]
	d.pods = d.pods[1:]
	d.cluster.Put(d.slice(old, false))
	sleep(ctx, drainTime)
	d.cluster.Delete(snapshot.EndpointSlice, snapshot.Key{Namespace: d.service.Namespace, Name: old.name})
	sleep(ctx, drainTime)
	old.stop()
	d.replaced.Add(1)
	return nil
}

func (d *deployment) stop() {
	for _, p := range d.pods {
		p.stop()
	}
}

func (d *deployment) slice(p *pod, ready bool) *discoveryv1.EndpointSlice {
	name, port, serving, terminating := "http", int32(p.at.Port()), true, !ready
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: d.service.Namespace, Name: p.name,
			Labels: map[string]string{discoveryv1.LabelServiceName: d.service.Name},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port}},
		Endpoints: []discoveryv1.Endpoint{{
			Addresses:  []string{p.at.Addr().String()},
			Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating},
		}},
	}
}

func startPod(name string, address netip.Addr, log *slog.Logger) (*pod, error) {
	listener, err := net.Listen("tcp", netip.AddrPortFrom(address, 0).String())
	if err != nil {
		return nil, err
	}
	p := &pod{name: name, at: netip.MustParseAddrPort(listener.Addr().String())}
	p.server = &http.Server{
		ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Server", "quayside-demo")
			fmt.Fprintf(w, "%s answers %s %s%s for %s\n", name, r.Method, r.Host, r.URL.Path, client(r))
		}),
	}
	go p.serve(listener, log)
	return p, nil
}

func (p *pod) serve(l net.Listener, log *slog.Logger) {
	if err := p.server.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
		log.Error("demo pod stopped", "pod", p.name, "error", err)
	}
}

func (p *pod) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if p.server.Shutdown(ctx) != nil {
		_ = p.server.Close() // somebody holds a request open; the demo ends all the same
	}
}

// client is who asked, as the pod sees it.
func client(r *http.Request) string {
	if forwarded := r.Header.Get("X-Forwarded-For"); forwarded != "" {
		return forwarded + ", forwarded by the proxy"
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return host + ", directly"
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

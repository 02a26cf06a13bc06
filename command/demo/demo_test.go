package demo

import (
	"context"
	"crypto/tls"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"go.uber.org/goleak"

	"quayside.io/cluster/manifest"
	"quayside.io/cluster/snapshot"
)

// A store holds what the demo makes known, as the cluster would.
type store struct {
	mu sync.Mutex
	c  *snapshot.Cluster
}

func (s *store) Put(objects ...snapshot.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.c = s.c.With(objects...)
}

func (s *store) Delete(kind snapshot.Kind, key snapshot.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.c = s.c.Without(kind, key)
}

func (s *store) now() *snapshot.Cluster {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.c
}

// ready returns where a ready pod of service listens.
func (s *store) ready(service string) (netip.AddrPort, bool) {
	for _, slice := range s.now().SlicesOf(snapshot.Key{Namespace: "default", Name: service}) {
		if *slice.Endpoints[0].Conditions.Ready {
			return address(slice), true
		}
	}
	return netip.AddrPort{}, false
}

func address(s *discoveryv1.EndpointSlice) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr(s.Endpoints[0].Addresses[0]), uint16(*s.Ports[0].Port))
}

func TestPodsComeAndGoUnderTheirServices(t *testing.T) {
	defer goleak.VerifyNone(t)
	cluster := &store{c: &snapshot.Cluster{}}

	// The stand-in of the proxy asks a ready pod anew for every request, which
	// is what the real one is held to.
	front := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			at, _ := cluster.ready("video")
			r.SetURL(&url.URL{Scheme: "http", Host: at.String()})
		},
		Transport: &http.Transport{DisableKeepAlives: true},
	})
	defer front.Close()
	at := netip.MustParseAddrPort(front.Listener.Addr().String())

	ctx, cancel := context.WithCancel(t.Context())
	d := New(cluster, ManyAddresses, 50*time.Millisecond, func() (netip.AddrPort, bool) {
		_, ok := cluster.ready("video")
		return at, ok
	}, slog.New(slog.DiscardHandler))
	done := make(chan error)
	go func() { done <- d.Run(ctx) }()

	deadline := time.After(20 * time.Second)
	for s := d.Stats(); s.Replaced < 2 || s.Requests < 50; s = d.Stats() {
		select {
		case <-deadline:
			t.Fatalf("after 20 s: %+v", s)
		case <-time.After(10 * time.Millisecond):
		}
	}
	if n := len(cluster.now().SlicesOf(snapshot.Key{Namespace: "default", Name: "store"})); n < 3 {
		t.Errorf("store has %d pods, want at least 3", n)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if s := d.Stats(); s.Failed > 0 {
		t.Errorf("%d of %d requests failed: %s", s.Failed, s.Requests, s.LastErr)
	}
}

func TestTheWatcherNoticesAFailure(t *testing.T) {
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no endpoint", http.StatusServiceUnavailable)
	}))
	defer broken.Close()
	ctx, cancel := context.WithCancel(t.Context())
	w := &watcher{proxy: func() (netip.AddrPort, bool) { return netip.MustParseAddrPort(broken.Listener.Addr().String()), true }}
	done := make(chan error)
	go func() { done <- w.run(ctx) }()
	for w.stats().Failed == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	<-done
	if s := w.stats(); s.LastErr == "" {
		t.Errorf("a 503 left no word: %+v", s)
	}
}

func TestCertificateIsGoodForItsHost(t *testing.T) {
	secret, err := certificate("store.example.com", "s", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		t.Fatal(err)
	}
	if err := pair.Leaf.VerifyHostname("store.example.com"); err != nil {
		t.Error(err)
	}
}

// The Services of a demo differ in nothing but how they come by their addresses.
func TestManifestsAreThere(t *testing.T) {
	names := map[Loopback][]string{}
	for _, on := range []Loopback{ManyAddresses, OneAddress} {
		for _, files := range Manifests(on) {
			err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				text, err := fs.ReadFile(files, path)
				if err != nil {
					return err
				}
				read := manifest.Decode(path, text)
				for _, o := range read.Objects {
					names[on] = append(names[on], fmt.Sprintf("%T %s/%s", o, o.GetNamespace(), o.GetName()))
				}
				for _, problem := range read.Errors {
					t.Error(problem)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if many := names[ManyAddresses]; len(many) < 5 || !slices.Equal(many, names[OneAddress]) {
		t.Errorf("the demo has %q", names)
	}
}

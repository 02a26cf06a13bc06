package proxy_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
	"quayside.io/test/certificate"
)

// start runs a proxy over files without files and returns both.
func start(t *testing.T, change func(*proxy.Options)) (*cluster.Files, *proxy.Proxy) {
	t.Helper()
	files, p, _ := startUntil(t, change)
	return files, p
}

// trusting believes what this machine, at its usual address, says of clients.
func trusting(o *proxy.Options) {
	o.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
}

// startUntil is start with what ends the proxy, after its drain, and waits for that. The
// end of the test does so too.
func startUntil(t *testing.T, change func(*proxy.Options)) (*cluster.Files, *proxy.Proxy, func()) {
	t.Helper()
	files, err := cluster.NewFiles(nil, nil, cluster.FilesOptions{NodeName: "here"})
	if err != nil {
		t.Fatal(err)
	}
	p, stop := startOn(t, files.Source, files.Run, change)
	return files, p, stop
}

// startOn runs a proxy over a source, and what feeds that.
func startOn(t *testing.T, source *cluster.Source, feed func(context.Context) error, change func(*proxy.Options)) (*proxy.Proxy, func()) {
	t.Helper()
	o := proxy.Options{Source: source, NodeName: "here", HTTP: "127.0.0.1:0", HTTPS: "127.0.0.2:0", AllowLoopback: true}
	if change != nil {
		change(&o)
	}
	p, err := proxy.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if p.Ready() == nil {
		t.Error("ready before it runs")
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 2)
	go func() { done <- feed(ctx) }()
	go func() { done <- p.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		for range 2 {
			if err := <-done; err != nil {
				t.Errorf("Run: %v", err)
			}
		}
	})
	t.Cleanup(stop)
	eventually(t, "the proxy is ready", func() bool { return p.Ready() == nil })
	return p, stop
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after half a minute it does not hold that %s", what)
		}
	}
}

func bound(p *proxy.Proxy, tls bool) string {
	st, _ := p.State().(proxy.State)
	for _, l := range st.Listeners {
		if l.TLS == tls {
			return l.Bound
		}
	}
	return ""
}

func service(name string, ports ...corev1.ServicePort) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       corev1.ServiceSpec{Ports: ports, Selector: map[string]string{"app": name}},
	}
}

func slice(service, portName string, addrs ...string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: service + "-1", Labels: map[string]string{discoveryv1.LabelServiceName: service},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for _, a := range addrs {
		ap := netip.MustParseAddrPort(a)
		port := int32(ap.Port())
		s.Ports = []discoveryv1.EndpointPort{{Name: &portName, Port: &port}}
		node := "here"
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{ap.Addr().String()}, NodeName: &node})
	}
	return s
}

func ingress(name, host, path, service string, port networkingv1.ServiceBackendPort) *networkingv1.Ingress {
	class, prefix := "quayside", networkingv1.PathTypePrefix
	return &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: networkingv1.IngressSpec{
			IngressClassName: &class,
			Rules: []networkingv1.IngressRule{{Host: host, IngressRuleValue: networkingv1.IngressRuleValue{
				HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{
					Path: path, PathType: &prefix,
					Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: service, Port: port}},
				}}},
			}}},
		},
	}
}

func backend(t *testing.T, name string) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s xff=%s proto=%s", name, r.Header.Get("X-Forwarded-For"), r.Header.Get("X-Forwarded-Proto"))
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func get(t *testing.T, addr, host, path string) (int, string) {
	t.Helper()
	req, err := http.NewRequest("GET", "http://"+addr+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = host
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

var number = networkingv1.ServiceBackendPort{Number: 80}

func TestRoutesAndEndpointsFollowTheCluster(t *testing.T) {
	files, p := start(t, nil)
	addr := bound(p, false)
	if code, _ := get(t, addr, "a.example", "/"); code != 404 {
		t.Errorf("with no Ingress: %d, want 404", code)
	}
	one, two := backend(t, "one"), backend(t, "two")
	files.Put(service("web", corev1.ServicePort{Name: "http", Port: 80}), slice("web", "http", one),
		ingress("web", "a.example", "/shop", "web", networkingv1.ServiceBackendPort{Name: "http"}))
	eventually(t, "the route is served", func() bool {
		code, body := get(t, addr, "a.example", "/shop/x")
		return code == 200 && body == "one xff=127.0.0.1 proto=http"
	})
	if code, _ := get(t, addr, "a.example", "/shopping"); code != 404 {
		t.Errorf("a path beyond the prefix: %d, want 404", code)
	}

	files.Put(slice("web", "http", two))
	eventually(t, "requests go to the new endpoint", func() bool {
		_, body := get(t, addr, "a.example", "/shop")
		return strings.HasPrefix(body, "two")
	})
	for range 20 {
		if _, body := get(t, addr, "a.example", "/shop"); !strings.HasPrefix(body, "two") {
			t.Fatalf("a request went to the endpoint that left: %s", body)
		}
	}

	files.Delete(snapshot.EndpointSlice, snapshot.Key{Namespace: "default", Name: "web-1"})
	eventually(t, "a Service without endpoints is a 503 that says so", func() bool {
		code, body := get(t, addr, "a.example", "/shop")
		return code == 503 && strings.Contains(body, "Service default/web has no endpoint")
	})
	text, err := json.Marshal(p.State())
	if err != nil || !strings.Contains(string(text), `"reason":"NoEndpoint"`) || !strings.Contains(string(text), `"host":"a.example"`) {
		t.Errorf("state %s, %v", text, err)
	}

	files.Delete(snapshot.Ingress, snapshot.Key{Namespace: "default", Name: "web"})
	eventually(t, "the route goes with its Ingress", func() bool {
		code, _ := get(t, addr, "a.example", "/shop")
		return code == 404
	})
}

// While pods come and go, not one request of 64 connections fails, and the
// listener stays as it is.
func TestPodsComeAndGoUnderLoad(t *testing.T) {
	const changes, clients = 1000, 64
	files, p := start(t, nil)
	addr := bound(p, false)
	pods := []*httptest.Server{pod(), pod(), pod()}
	publish := func() {
		for i, pod := range pods {
			s := slice("web", "", strings.TrimPrefix(pod.URL, "http://"))
			s.Name = fmt.Sprint("web-", i)
			files.Put(s)
		}
	}
	files.Put(service("web", corev1.ServicePort{Port: 80}), ingress("web", "", "/", "web", number))
	publish()
	eventually(t, "the route is served", func() bool { code, _ := get(t, addr, "x", "/"); return code == 200 })

	var sent atomic.Int64
	stop := hammer(t, addr, clients, &sent)
	var stopping sync.WaitGroup
	var began sync.Map // which change a pod came with, by its address
	for i := range changes {
		// As in a cluster: the slice changes first, and the pod ends when those
		// who watch have seen it, however busy this machine is.
		k := i % len(pods)
		gone := pods[k]
		pods[k] = pod()
		began.Store(strings.TrimPrefix(pods[k].URL, "http://"), i)
		publish()
		stopping.Go(func() {
			for until := time.Now().Add(20 * time.Second); !hasSeen(p, &began, i) && time.Now().Before(until); {
				time.Sleep(5 * time.Millisecond)
			}
			gone.Close()
		})
		// Not more changes than a request may meet, however busy this machine is.
		for enough := sent.Load() + 8; sent.Load() < enough && !t.Failed(); {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(4 * time.Millisecond)
	}
	stop()
	stopping.Wait()
	for _, pod := range pods {
		pod.Close()
	}
	if bound(p, false) != addr {
		t.Error("the listener was opened again")
	}
	t.Logf("%d requests over %d changes", sent.Load(), changes)
}

// hammer sends requests over so many connections without a pause, and counts them,
// until it is stopped. Each that is not answered with 200 is an error.
func hammer(t *testing.T, addr string, clients int, sent *atomic.Int64) (stop func()) {
	transport := &http.Transport{MaxIdleConnsPerHost: clients, MaxConnsPerHost: clients}
	client := &http.Client{Transport: transport}
	stopped := make(chan struct{})
	var working sync.WaitGroup
	for range clients {
		working.Go(func() {
			for {
				select {
				case <-stopped:
					return
				default:
				}
				sent.Add(1)
				resp, err := client.Get("http://" + addr + "/")
				if err != nil {
					t.Error(err)
					return
				}
				body, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if resp.StatusCode != 200 || err != nil {
					t.Errorf("%d %s %v", resp.StatusCode, body, err)
					return
				}
			}
		})
	}
	return func() {
		close(stopped)
		working.Wait()
		transport.CloseIdleConnections()
		if sent.Load() < int64(clients) {
			t.Errorf("only %d requests were sent", sent.Load())
		}
	}
}

// While an Ingress is led from one Service to another and back, not one request
// fails: those that met the table before are answered by what it led to.
func TestRoutesChangeUnderLoad(t *testing.T) {
	files, p := start(t, nil)
	addr := bound(p, false)
	for _, name := range []string{"blue", "green"} {
		files.Put(service(name, corev1.ServicePort{Port: 80}), slice(name, "", backend(t, name)))
	}
	lead := func(to string) {
		files.Put(ingress("web", "", "/", to, number))
		eventually(t, "requests are led to "+to, func() bool {
			code, body := get(t, addr, "x", "/")
			return code == 200 && strings.HasPrefix(body, to)
		})
	}
	lead("blue")
	var sent atomic.Int64
	stop := hammer(t, addr, 16, &sent)
	for range 100 {
		lead("green")
		lead("blue")
	}
	stop()
	t.Logf("%d requests over 200 changes", sent.Load())
}

// hasSeen reports whether the endpoints in force are those of a change or of a later
// one. That a pod is not among them does not say so: it may be still to come.
func hasSeen(p *proxy.Proxy, began *sync.Map, change int) bool {
	st, _ := p.State().(proxy.State)
	return slices.ContainsFunc(st.Backends, func(b proxy.BackendState) bool {
		return slices.ContainsFunc(b.Endpoints, func(addr string) bool {
			with, there := began.Load(addr)
			return there && with.(int) >= change
		})
	})
}

func pod() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "fine") }))
}

// A backend Service with the Local policy is reached on this node only.
func TestLocalPolicy(t *testing.T) {
	files, p := start(t, nil)
	svc := service("web", corev1.ServicePort{Port: 80})
	svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	here := slice("web", "", backend(t, "here"))
	there := slice("web", "", backend(t, "there"))
	there.Name = "web-2"
	elsewhere := "elsewhere"
	there.Endpoints[0].NodeName = &elsewhere
	files.Put(svc, here, there, ingress("web", "", "/", "web", number))
	eventually(t, "the route is served", func() bool { code, _ := get(t, bound(p, false), "x", "/"); return code == 200 })
	for range 10 {
		if _, body := get(t, bound(p, false), "x", "/"); !strings.HasPrefix(body, "here") {
			t.Fatalf("answered by %s", body)
		}
	}
	files.Delete(snapshot.EndpointSlice, snapshot.Key{Namespace: "default", Name: "web-1"})
	eventually(t, "without an endpoint here it is a 503", func() bool {
		code, body := get(t, bound(p, false), "x", "/")
		return code == 503 && strings.Contains(body, "externalTrafficPolicy: Local")
	})
}

func TestCertificateByServerName(t *testing.T) {
	files, p := start(t, nil)
	ing := ingress("web", "shop.example", "/", "web", number)
	ing.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"shop.example"}, SecretName: "shop"}}
	secret := certificate.Secret(t, "default/shop", time.Now().Add(time.Hour), "shop.example")
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", backend(t, "web")), ing, secret)
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: certificate.Roots(secret), ServerName: "shop.example"}, DisableKeepAlives: true,
	}}
	ask := func() (string, error) {
		req, _ := http.NewRequest("GET", "https://"+bound(p, true)+"/", nil)
		req.Host = "shop.example"
		resp, err := client.Do(req)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return string(body), err
	}
	eventually(t, "the Secret's certificate is served", func() bool {
		body, err := ask()
		return err == nil && body == "web xff=127.0.0.1 proto=https"
	})

	// Another certificate for the same host comes in force without a restart.
	renewed := certificate.Secret(t, "default/shop", time.Now().Add(2*time.Hour), "shop.example")
	client.Transport = &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: certificate.Roots(renewed), ServerName: "shop.example"}, DisableKeepAlives: true,
	}
	files.Put(renewed)
	eventually(t, "the renewed certificate is served", func() bool { _, err := ask(); return err == nil })

	// A name that nobody has a certificate for gets the default one.
	conn, err := tls.Dial("tcp", bound(p, true), &tls.Config{InsecureSkipVerify: true, ServerName: "other.example"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if cn := conn.ConnectionState().PeerCertificates[0].Subject.CommonName; !strings.HasPrefix(cn, "Quayside default") {
		t.Errorf("certificate of %q", cn)
	}
	if _, err := tls.Dial("tcp", bound(p, true), &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11}); err == nil {
		t.Error("TLS 1.1 was accepted")
	}
}

func TestAddressInUseIsAnError(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	files, err := cluster.NewFiles(nil, nil, cluster.FilesOptions{NodeName: "here"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := proxy.New(proxy.Options{Source: files.Source, HTTP: l.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	go files.Run(ctx)
	if err := p.Run(ctx); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("Run: %v, want that the address is in use", err)
	}
}

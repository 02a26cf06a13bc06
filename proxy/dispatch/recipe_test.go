package dispatch_test

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/dispatch"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
	"quayside.io/proxy/route"
)

// newTable routes everything to default/web.
func newTable(change func(*networkingv1.Ingress)) *route.Table {
	class := "quayside"
	ing := &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: networkingv1.IngressSpec{
			IngressClassName: &class,
			DefaultBackend: &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
				Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80},
			}},
		},
	}
	if change != nil {
		change(ing)
	}
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}
	return route.Compile(snapshot.Of(ing, svc), nil, route.Options{})
}

// forwarderFunc is an upstream.
type forwarderFunc func(*exchange.Exchange)

func (f forwarderFunc) Forward(ex *exchange.Exchange) { f(ex) }

// closing notes that it was closed.
type closing struct {
	io.Reader
	closed *bool
}

func (c closing) Close() error { *c.closed = true; return nil }

// frontEnd is the recipe of doc.go for a new front end, over net/http.
type frontEnd struct{ handler exchange.Handler }

func (f frontEnd) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var ex exchange.Exchange
	r := &ex.Request
	r.Method, r.Host, r.Target = []byte(req.Method), []byte(req.Host), []byte(req.RequestURI)
	r.Client, _ = netip.ParseAddrPort(req.RemoteAddr)
	r.TLS, r.Received = req.TLS != nil, time.Now()
	for name, values := range req.Header {
		for _, v := range values {
			r.Header.Add(name, v)
		}
	}
	var ok bool
	if r.Path, ok = route.Normalize(nil, r.Target); !ok {
		ex.Answer(400, "400 Bad Request\n")
	}
	f.handler.Handle(&ex)
	for _, field := range ex.Response.Header.Fields() {
		w.Header().Add(string(field.Name), string(field.Value))
	}
	w.WriteHeader(ex.Response.Status)
	var err error
	if body := ex.Response.Body; body != nil {
		_, err = io.Copy(w, body)
		body.Close()
	} else {
		w.Write(ex.Response.Text)
	}
	ex.Observer.Finished(&ex, err != nil)
}

// A front end written after the recipe reaches routes and backends, and what it
// refuses is counted.
func TestRecipeOfAFrontEnd(t *testing.T) {
	var seen []dispatch.Record
	var paths []string
	d := dispatch.New(dispatch.Options{Access: func(r dispatch.Record) {
		seen = append(seen, r)
		paths = append(paths, string(r.Exchange.Request.Target))
	}})
	var closed bool
	d.SetTable(newTable(nil), []dispatch.Forwarder{forwarderFunc(func(ex *exchange.Exchange) {
		ex.Response.Status, ex.Response.Length = 200, -1
		ex.Response.Body = closing{strings.NewReader("to " + string(ex.Request.Header.Get("X-Real-IP"))), &closed}
	})})
	s := httptest.NewServer(frontEnd{d})
	defer s.Close()
	resp, err := http.Get(s.URL + "/a")
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != 200 || string(body) != "to 127.0.0.1" || !closed {
		t.Errorf("got %d %q, body closed: %v", resp.StatusCode, body, closed)
	}
	req, _ := http.NewRequest("GET", s.URL, nil)
	req.URL.Opaque = "/../b"
	if resp, err = http.DefaultClient.Do(req); err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 400 {
		t.Errorf("a refused request got %d", resp.StatusCode)
	}
	s.Close()
	if len(seen) != 2 || seen[0].Route == nil || seen[0].Took <= 0 || seen[1].Route != nil || paths[1] != "/../b" {
		t.Errorf("the access log was told %+v of %q", seen, paths)
	}
}

// shout is the recipe of doc.go for a new filter: options in, functions out.
func shout(word string) filter.Filter {
	value := []byte(word)
	return filter.Filter{
		Request: func(ex *exchange.Exchange) bool {
			if string(ex.Request.Method) == "BREW" {
				ex.Answer(418, "418 I'm a teapot\n")
				return false
			}
			return true
		},
		Response: func(ex *exchange.Exchange) { ex.Response.Header.SetBytes("X-Shout", value) },
	}
}

func TestRecipeOfAFilter(t *testing.T) {
	var ended int
	count := filter.Filter{Finished: func(*exchange.Exchange) { ended++ }}
	chain := filter.Chain{count, shout("hey"), count}
	var ex exchange.Exchange
	for _, c := range []struct {
		method        string
		status, ended int
	}{{"GET", 200, 2}, {"BREW", 418, 1}} {
		ended = 0
		ex.Reset()
		ex.Request.Method = []byte(c.method)
		if chain.Request(&ex) {
			ex.Response.Status = 200
		}
		chain.Response(&ex)
		chain.Finished(&ex)
		if ex.Response.Status != c.status || string(ex.Response.Header.Get("X-Shout")) != "hey" || ended != c.ended {
			t.Errorf("%s: %d, %q, %d filters freed", c.method, ex.Response.Status, ex.Response.Header.Get("X-Shout"), ended)
		}
	}
	if n := testing.AllocsPerRun(100, func() {
		ex.Reset()
		chain.Request(&ex)
		chain.Response(&ex)
		chain.Finished(&ex)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A panic is answered with 500, and nothing that was opened before it stays open.
func TestPanicClosesTheResponse(t *testing.T) {
	var closed bool
	d := dispatch.New(dispatch.Options{})
	d.SetTable(newTable(nil), []dispatch.Forwarder{forwarderFunc(func(ex *exchange.Exchange) {
		ex.Response.Status, ex.Response.Body = 200, closing{strings.NewReader(""), &closed}
		panic("no")
	})})
	s := httptest.NewServer(frontEnd{d})
	defer s.Close()
	resp, err := http.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := bufio.NewReader(resp.Body).ReadString('\n')
	if resp.StatusCode != 500 || !strings.HasPrefix(text, "500 ") || !closed {
		t.Errorf("got %d %q, body closed: %v", resp.StatusCode, text, closed)
	}
}

// Closed routes and redirects are answered without a backend.
func TestAnswersOfItsOwn(t *testing.T) {
	annotate := func(key, value string) func(*networkingv1.Ingress) {
		return func(ing *networkingv1.Ingress) { ing.Annotations = map[string]string{route.NginxPrefix + key: value} }
	}
	for _, c := range []struct {
		name, proto string
		change      func(*networkingv1.Ingress)
		trusted     []netip.Prefix
		status      int
	}{
		{"no guard that is understood", "", annotate("auth-type", "digest"), nil, 503},
		{"over http", "", annotate("force-ssl-redirect", "true"), nil, 308},
		{"a stranger says https", "https", annotate("force-ssl-redirect", "true"), nil, 308},
		{"a trusted proxy says https", "https", annotate("force-ssl-redirect", "true"), []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, 200},
		{"nothing asked for", "", nil, nil, 200},
	} {
		d := dispatch.New(dispatch.Options{TrustedProxies: c.trusted})
		d.SetTable(newTable(c.change), []dispatch.Forwarder{forwarderFunc(func(ex *exchange.Exchange) { ex.Answer(200, "ok") })})
		var ex exchange.Exchange
		ex.Request = exchange.Request{Method: []byte("GET"), Host: []byte("shop:8080"), Target: []byte("/a?b"), Path: []byte("/a"),
			Client: netip.MustParseAddrPort("127.0.0.1:1")}
		if c.proto != "" {
			ex.Request.Header.Add("X-Forwarded-Proto", c.proto)
		}
		d.Handle(&ex)
		if ex.Response.Status != c.status {
			t.Errorf("%s: status %d, want %d: %s", c.name, ex.Response.Status, c.status, ex.Response.Text)
		}
		if to := string(ex.Response.Header.Get("Location")); c.status == 308 && to != "https://shop/a?b" {
			t.Errorf("%s: sent to %q", c.name, to)
		}
	}
}

// A tunnel that never begins gives back what was taken for it, once.
func TestTunnelThatNeverBegins(t *testing.T) {
	var closed bool
	d := dispatch.New(dispatch.Options{})
	table := newTable(nil)
	for rt := range table.Routes() {
		rt.Filters = &filter.Settings{Limits: &filter.Limits{Connections: 1}}
	}
	d.SetTable(table, []dispatch.Forwarder{forwarderFunc(func(ex *exchange.Exchange) {
		ex.Response.Status, ex.Response.Upgraded = 101, func(io.ReadWriteCloser) {}
		ex.Response.Body = closing{strings.NewReader(""), &closed}
	})})
	request := func() *exchange.Exchange {
		ex := &exchange.Exchange{Request: exchange.Request{Method: []byte("GET"), Host: []byte("a"), Target: []byte("/"), Path: []byte("/"),
			Client: netip.MustParseAddrPort("127.0.0.1:1")}}
		d.Handle(ex)
		return ex
	}
	first := request()
	first.Observer.Finished(first, false)
	if second := request(); second.Response.Status != 503 {
		t.Errorf("beside a tunnel about to begin: %d", second.Response.Status)
	}
	first.Response.Body.Close()
	first.Response.Body.Close()
	if !closed {
		t.Error("what the upstream holds for the tunnel was not closed")
	}
	third := request()
	if third.Response.Status != 101 {
		t.Errorf("after the tunnel was given up: %d", third.Response.Status)
	}
	third.Response.Upgraded(nil)
	if fourth := request(); fourth.Response.Status != 101 {
		t.Errorf("after a tunnel has ended: %d", fourth.Response.Status)
	}
}

// A route that stays in the next table keeps what was compiled for it, so that a
// change elsewhere costs it nothing.
func TestPlansOutliveTables(t *testing.T) {
	d := dispatch.New(dispatch.Options{})
	table := newTable(nil)
	users, _, err := filter.ParseUsers([]byte("u:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n"))
	if err != nil {
		t.Fatal(err)
	}
	for rt := range table.Routes() {
		rt.Filters = &filter.Settings{Basic: &filter.Basic{Users: users}}
	}
	backends := []dispatch.Forwarder{forwarderFunc(func(ex *exchange.Exchange) { ex.Answer(200, "ok") })}
	var ex exchange.Exchange
	ask := func() {
		ex.Reset()
		ex.Request.Host, ex.Request.Path, ex.Request.Target = []byte("a"), []byte("/"), []byte("/")
		ex.Request.Client = netip.MustParseAddrPort("127.0.0.1:1")
		d.Handle(&ex)
	}
	d.SetTable(table, backends)
	ask()
	first := ex.Observer
	for range 3 {
		d.SetTable(table, backends)
		if ask(); ex.Observer != first || ex.Response.Status != 401 {
			t.Fatalf("compiled again, status %d", ex.Response.Status)
		}
	}
}

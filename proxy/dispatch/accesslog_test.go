package dispatch_test

import (
	"encoding/base64"
	"io"
	"net/netip"
	"slices"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/accesslog"
	"quayside.io/proxy/dispatch"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/route"
)

// logLines keeps what was logged.
type logLines []string

func (l *logLines) Line(b []byte) { *l = append(*l, string(b)) }

func logged(t *testing.T, to dispatch.Lines, share float64) dispatch.AccessLog {
	t.Helper()
	f, err := accesslog.Named("$request $status $ingress_name $service_name $body_bytes_sent", nil)
	if err != nil {
		t.Fatal(err)
	}
	return dispatch.AccessLog{Lines: to, Format: f, Share: share}
}

// tableWith is newTable under a ConfigMap.
func tableWith(annotations map[string]string, data map[string]string, more ...snapshot.Object) *route.Table {
	class := "quayside"
	ing := &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Annotations: annotations},
		Spec: networkingv1.IngressSpec{IngressClassName: &class, Rules: []networkingv1.IngressRule{{Host: "a", IngressRuleValue: networkingv1.IngressRuleValue{
			HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{Path: "/", Backend: networkingv1.IngressBackend{
				Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}}}}}}}}}},
	}
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	wide := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "wide"}, Data: data}
	return route.Compile(snapshot.Of(append(more, ing, svc, wide)...), nil, route.Options{ConfigMap: snapshot.KeyOf(wide)})
}

// askFor sends a request through d as a front end does, to its end.
func askFor(d *dispatch.Dispatcher, ex *exchange.Exchange, host, target string) {
	ex.Reset()
	r := &ex.Request
	r.Method, r.Protocol, r.Host = append(r.Method[:0], "GET"...), "HTTP/1.1", []byte(host)
	r.Target = []byte(target)
	r.Path, r.Client, r.Received = r.Target, netip.MustParseAddrPort("127.0.0.1:1"), time.Now()
	d.Handle(ex)
	if ex.Response.Upgraded == nil && ex.Response.Body != nil {
		ex.Response.Body.Close()
	}
	ex.Observer.Finished(ex, false)
}

func TestWhatIsLogged(t *testing.T) {
	status := func(ex *exchange.Exchange) {
		switch string(ex.Request.Target) {
		case "/panic":
			panic("no")
		case "/503":
			ex.Answer(503, "no")
		default:
			ex.Answer(200, "ok")
		}
	}
	no := map[string]string{route.NginxPrefix + "enable-access-log": "false"}
	for _, c := range []struct {
		name        string
		annotations map[string]string
		data        map[string]string
		share       float64
		want        []string
	}{
		{"all", nil, nil, 1, []string{"GET /a HTTP/1.1 200 web web 0", "GET /503 HTTP/1.1 503 web web 0", "GET /panic HTTP/1.1 500 web web 0", "GET /b HTTP/1.1 404 - - 0", "- 400 - - 0"}},
		{"a route that is not", no, nil, 1, []string{"GET /b HTTP/1.1 404 - - 0", "- 400 - - 0"}},
		{"none", nil, map[string]string{"disable-access-log": "true"}, 1, nil},
		{"none, in the other spelling", nil, map[string]string{"disable-http-access-log": "true"}, 1, nil},
		{"some targets not", nil, map[string]string{"skip-access-log-urls": "/A, ~^/50"}, 1, []string{"GET /panic HTTP/1.1 500 web web 0", "GET /b HTTP/1.1 404 - - 0", "- 400 - - 0"}},
		{"a share, and all that fails", nil, nil, 0, []string{"GET /503 HTTP/1.1 503 web web 0", "GET /panic HTTP/1.1 500 web web 0"}},
		{"a format", nil, map[string]string{"log-format-upstream": `{"s": $status, "u": "$http_none"}`, "log-format-escape-json": "true"}, 1,
			[]string{`{"s": 200, "u": ""}`, `{"s": 503, "u": ""}`, `{"s": 500, "u": ""}`, `{"s": 404, "u": ""}`, `{"s": 400, "u": ""}`}},
	} {
		var lines logLines
		d := dispatch.New(dispatch.Options{AccessLog: logged(t, &lines, c.share)})
		d.SetTable(tableWith(c.annotations, c.data), []dispatch.Forwarder{forwarderFunc(status)})
		var ex exchange.Exchange
		askFor(d, &ex, "a", "/a")
		askFor(d, &ex, "a", "/503")
		askFor(d, &ex, "a", "/panic")
		askFor(d, &ex, "b", "/b")
		ex.Reset()
		ex.Answer(400, "malformed")
		d.Handle(&ex)
		ex.Observer.Finished(&ex, false)
		if !slices.Equal(lines, c.want) {
			t.Errorf("%s: %q, want %q", c.name, lines, c.want)
		}
	}
}

// The line of a tunnel is written when it has ended, with what it carried, or when it
// turns out never to begin; once.
func TestTunnelsAreLoggedAtTheirEnd(t *testing.T) {
	var lines logLines
	d := dispatch.New(dispatch.Options{AccessLog: logged(t, &lines, 1)})
	d.SetTable(newTable(nil), []dispatch.Forwarder{forwarderFunc(func(ex *exchange.Exchange) {
		ex.Response.Status, ex.Response.Upgraded = 101, func(c io.ReadWriteCloser) { io.WriteString(c, "hello") }
	})})
	var ex exchange.Exchange
	askFor(d, &ex, "a", "/socket")
	open, body := ex.Response.Upgraded, ex.Response.Body
	if len(lines) != 0 {
		t.Fatalf("logged before it began: %q", lines)
	}
	target := ex.Request.Asked.Target
	copy(target, "/reused") // by the next request
	ex.Reset()
	open(nothing{})
	body.Close()
	if want := []string{"GET /socket HTTP/1.1 101 web web 5"}; !slices.Equal(lines, want) {
		t.Errorf("%q, want %q", lines, want)
	}
	askFor(d, &ex, "a", "/given-up")
	ex.Response.Body.Close()
	ex.Response.Body.Close()
	if len(lines) != 2 {
		t.Errorf("a tunnel that never began: %q", lines)
	}
}

// Whom a guard let in is logged, though the backend is not told the password; from a
// tunnel's line, too, which is written when the front end has long reused the head.
func TestUsersAreLogged(t *testing.T) {
	f, err := accesslog.Named("$remote_user $status", nil)
	if err != nil {
		t.Fatal(err)
	}
	var lines logLines
	var told []string
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "users"}, Data: map[string][]byte{"auth": []byte("bob:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n")}}
	d := dispatch.New(dispatch.Options{AccessLog: dispatch.AccessLog{Lines: &lines, Format: f, Share: 1}})
	d.SetTable(tableWith(map[string]string{route.NginxPrefix + "auth-type": "basic", route.NginxPrefix + "auth-secret": "users"}, nil, secret), []dispatch.Forwarder{forwarderFunc(func(ex *exchange.Exchange) {
		told = append(told, string(ex.Request.Header.Get("Authorization")))
		if ex.Answer(200, "ok"); string(ex.Request.Path) == "/socket" {
			ex.Response.Status, ex.Response.Upgraded = 101, func(io.ReadWriteCloser) {}
		}
	})})
	for _, c := range []struct{ target, password string }{{"/", "password"}, {"/socket", "password"}, {"/", "wrong"}} {
		var ex exchange.Exchange
		credentials := []byte("Basic " + base64.StdEncoding.EncodeToString([]byte("bob:"+c.password)))
		r := &ex.Request
		r.Method, r.Host, r.Target, r.Path = []byte("GET"), []byte("a"), []byte(c.target), []byte(c.target)
		r.Client, r.Received = netip.MustParseAddrPort("127.0.0.1:1"), time.Now()
		r.Header.AddBorrowed([]byte("Authorization"), credentials)
		d.Handle(&ex)
		if open, body := ex.Response.Upgraded, ex.Response.Body; open != nil {
			copy(credentials, "Reused by the next request")
			ex.Reset()
			open(nothing{})
			body.Close()
			continue
		}
		ex.Observer.Finished(&ex, false)
	}
	if want := []string{"bob 200", "bob 101", "bob 401"}; !slices.Equal(lines, want) {
		t.Errorf("%q, want %q", lines, want)
	}
	if want := []string{"", ""}; !slices.Equal(told, want) {
		t.Errorf("the backend is told %q", told)
	}
}

// A tunnel that is logged is waited for like any other: without a buffer, where the client's
// connection can be (see exchange.Response.Upgraded).
func TestLoggedTunnelsAreWaitedForWithoutABuffer(t *testing.T) {
	var lines logLines
	var got io.ReadWriteCloser
	d := dispatch.New(dispatch.Options{AccessLog: logged(t, &lines, 1)})
	d.SetTable(newTable(nil), []dispatch.Forwarder{forwarderFunc(func(ex *exchange.Exchange) {
		ex.Response.Status, ex.Response.Upgraded = 101, func(c io.ReadWriteCloser) { got = c }
	})})
	for _, client := range []io.ReadWriteCloser{bare{}, nothing{}} {
		var ex exchange.Exchange
		r := &ex.Request
		r.Method, r.Host, r.Target, r.Path = []byte("GET"), []byte("a"), []byte("/a"), []byte("/a")
		r.Client, r.Received = netip.MustParseAddrPort("127.0.0.1:1"), time.Now()
		d.Handle(&ex)
		open, body := ex.Response.Upgraded, ex.Response.Body
		open(client)
		body.Close()
		var ahead []byte
		var raw syscall.RawConn
		if s, ok := got.(interface {
			Socket() ([]byte, syscall.RawConn)
		}); ok {
			ahead, raw = s.Socket()
		}
		_, able := client.(bare)
		if found := string(ahead) == "ahead" && raw == (descriptor{}); found != able {
			t.Errorf("%T: read ahead %q, socket %v", client, ahead, raw)
		}
		if !able && (ahead != nil || raw != nil) {
			t.Errorf("%T has no socket, and shows %q, %v", client, ahead, raw)
		}
	}
	if len(lines) != 2 {
		t.Errorf("logged: %q", lines)
	}
}

// bare is a connection that can be waited for without a buffer.
type bare struct{ nothing }

func (bare) Socket() ([]byte, syscall.RawConn) { return []byte("ahead"), descriptor{} }

// descriptor is a socket that nobody uses.
type descriptor struct{ syscall.RawConn }

// nothing is the connection of a client that says nothing.
type nothing struct{}

func (nothing) Read([]byte) (int, error)    { return 0, io.EOF }
func (nothing) Write(b []byte) (int, error) { return len(b), nil }
func (nothing) Close() error                { return nil }

// A request that is logged allocates as little as one that is not.
func TestLoggingCostsNoAllocation(t *testing.T) {
	for name, log := range map[string]dispatch.AccessLog{"on": logged(t, discard{}, 1), "off": {}} {
		d := dispatch.New(dispatch.Options{AccessLog: log})
		d.SetTable(newTable(nil), []dispatch.Forwarder{forwarderFunc(func(ex *exchange.Exchange) { ex.Answer(200, "ok") })})
		var ex exchange.Exchange
		host, target, method, client := []byte("a"), []byte("/a"), []byte("GET"), netip.MustParseAddrPort("127.0.0.1:1")
		ask := func() {
			ex.Reset()
			r := &ex.Request
			r.Method, r.Protocol, r.Host, r.Target, r.Path, r.Client, r.Received = method, "HTTP/1.1", host, target, target, client, time.Now()
			d.Handle(&ex)
			ex.Observer.Finished(&ex, false)
		}
		ask()
		if n := testing.AllocsPerRun(100, ask); n != 0 && !racing {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

type discard struct{}

func (discard) Line([]byte) {}

package proxy_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"

	"quayside.io/proxy"
)

// strict are rules about heads and bodies.
func strict() map[string]string {
	return map[string]string{"enable-modsecurity": "true", "modsecurity-snippet": `
SecRuleEngine On
SecRequestBodyNoFilesLimit 1000
SecRequestBodyLimit 1000
SecRule REQUEST_PROTOCOL "!@rx ^HTTP/(1\.1|2\.0)$" "id:1,phase:1,deny,status:505"
SecRule REQUEST_HEADERS:X-Evil "." "id:2,phase:1,deny"
SecRule REQUEST_HEADERS:Host "@contains evil" "id:3,phase:1,deny"
SecRule ARGS:word "@streq secret" "id:4,phase:2,deny"
SecRule RESPONSE_HEADERS:X-Leak "." "id:5,phase:3,deny"`}
}

// TestFirewallOverHTTP2 refuses over HTTP/2 what it refuses over HTTP/1.1, and the
// connection goes on.
func TestFirewallOverHTTP2(t *testing.T) {
	files, p := start(t, func(o *proxy.Options) { o.HTTP2, o.Routes.ModSecurity = true, true })
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", echo(t, "web")), annotated("on", "on.test", strict()))
	routed(t, p, "on.test")
	var dialed int
	tr := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			dialed++
			return (&net.Dialer{}).DialContext(ctx, network, bound(p, true))
		},
	}
	defer tr.CloseIdleConnections()
	send := func(method, target, evil, body string) (int, string) {
		req, err := http.NewRequestWithContext(within(t), method, "https://on.test"+target, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if evil != "" {
			req.Header.Set("X-Evil", evil)
		}
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatalf("%s %s: %v", method, target, err)
		}
		defer resp.Body.Close()
		said, _ := io.ReadAll(resp.Body)
		if resp.ProtoMajor != 2 {
			t.Errorf("%s %s is answered over %s", method, target, resp.Proto)
		}
		return resp.StatusCode, string(said)
	}
	for range 2 {
		for _, c := range []struct {
			method, target, evil, body string
			want                       int
			says                       string
		}{
			{"GET", "/", "", "", 200, "web uri=/ "},
			{"GET", "/", "x", "", 403, "a rule of the firewall"},
			{"GET", "/?word=secret", "", "", 403, "a rule of the firewall"},
			{"GET", "/?word=public", "", "", 200, "web uri=/?word=public "},
			{"POST", "/", "", "word=public", 200, "web uri=/ "},
			{"POST", "/", "", "word=secret", 403, "a rule of the firewall"},
			{"POST", "/", "", "word=" + strings.Repeat("x", 100_000), 413, "no body of that length"},
		} {
			if status, said := send(c.method, c.target, c.evil, c.body); status != c.want || !strings.Contains(said, c.says) {
				t.Errorf("%s %s %.20q: %d %q, want %d", c.method, c.target, c.body, status, said, c.want)
			}
		}
	}
	if dialed != 1 {
		t.Errorf("what is refused ends the connection: there were %d", dialed)
	}
}

// TestFirewallOfGRPC looks at the heads of calls, and leaves their messages alone.
func TestFirewallOfGRPC(t *testing.T) {
	_, addr := grpcServer(t, "127.0.0.1:0", false)
	files, p := start(t, func(o *proxy.Options) { o.HTTP2, o.H2C, o.Routes.ModSecurity = true, true, true })
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", addr),
		annotated("on", "on.test", withOption(strict(), "backend-protocol", "GRPC")))
	routed(t, p, "on.test")
	cc, err := grpc.NewClient("passthrough:///"+bound(p, false), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("on.test"), grpc.WithDisableRetry())
	if err != nil {
		t.Fatal(err)
	}
	defer cc.Close()
	c := pb.NewTestServiceClient(cc)
	long := &pb.SimpleRequest{Payload: &pb.Payload{Body: []byte("word=secret&" + strings.Repeat("x", 100_000))}}
	if _, err := c.UnaryCall(within(t), long); err != nil {
		t.Errorf("a message that rules would refuse as a form: %v", err)
	}
	t.Run("conversation", func(t *testing.T) { testConversation(t, c) })
	_, err = c.UnaryCall(metadata.AppendToOutgoingContext(within(t), "x-evil", "yes"), &pb.SimpleRequest{})
	if s := status.Convert(err); s.Code() != codes.PermissionDenied {
		t.Errorf("a call that is refused ends with %v %q", s.Code(), s.Message())
	}
	s, err := c.FullDuplexCall(metadata.AppendToOutgoingContext(within(t), "x-evil", "yes"))
	if err == nil {
		_, err = s.Recv()
	}
	if status.Code(err) != codes.PermissionDenied {
		t.Errorf("a stream that is refused ends with %v", err)
	}
	if _, err := c.UnaryCall(within(t), &pb.SimpleRequest{}); err != nil {
		t.Errorf("after that: %v", err)
	}
}

// A client that calls its form gRPC has it judged like any other, unless the backend was
// said to speak gRPC: one of HTTP/2 may be any web server.
func TestFirewallIsNotToldThatFormsAreGRPC(t *testing.T) {
	_, addr := grpcServer(t, "127.0.0.1:0", false)
	files, p := start(t, func(o *proxy.Options) { o.HTTP2, o.H2C, o.Routes.ModSecurity = true, true, true })
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", addr),
		annotated("h2c", "h2c.test", withOption(strict(), "backend-protocol", "H2C")),
		annotated("grpc", "grpc.test", withOption(strict(), "backend-protocol", "GRPC")))
	routed(t, p, "h2c.test")
	routed(t, p, "grpc.test")
	for _, c := range []struct {
		host, kind string
		judged     bool
	}{
		{"h2c.test", "application/grpc", true}, {"h2c.test", "application/grpc+proto", true},
		{"grpc.test", "application/grpc", false}, {"grpc.test", "application/grpc; x=y", false},
		{"grpc.test", "application/grpc-web", true}, {"grpc.test", "application/grpcx", true},
	} {
		// It is longer than strict lets bodies be.
		status, said := ask(t, bound(p, false), c.host, "POST /x\nContent-Type: "+c.kind+"\n\n"+strings.Repeat("x", 2000))
		if judged := status == 413 || strings.Contains(said, "no body of that length"); judged != c.judged {
			t.Errorf("%s, %s: judged %v, want %v: %d %q", c.host, c.kind, judged, c.judged, status, said)
		}
	}
}

// What the firewall refuses has no page of default-backend, as in ingress-nginx, whose
// rules refuse the page as well; what a backend answers has.
func TestFirewallAndCustomErrors(t *testing.T) {
	files, p := start(t, func(o *proxy.Options) { o.Routes.ModSecurity = true })
	options := withOption(withOption(strict(), "custom-http-errors", "403,413"), "default-backend", "pages")
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", answering(t)),
		service("pages", corev1.ServicePort{Port: 80}), slice("pages", "", errorPages(t)), annotated("on", "on.test", options))
	routed(t, p, "on.test")
	for request, says := range map[string]string{
		"/?status=403":             "page method=GET",
		"/?status=403&word=secret": "a rule of the firewall",
		"POST /?status=200\nContent-Type: application/x-www-form-urlencoded\n\nword=" + strings.Repeat("x", 2000): "no body of that length",
	} {
		if status, said := ask(t, bound(p, false), "on.test", request); status != 403 && status != 413 || !strings.Contains(said, says) {
			t.Errorf("%.60q: %d %q, want %q", request, status, said, says)
		}
	}
}

package e2e

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"quayside.io/cluster"
	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
	"quayside.io/proxy/route"
	"quayside.io/test/lab"
)

// Drawn Ingresses are given to ingress-nginx itself, which is its controller, its template, its
// Lua and an nginx, and to our proxy: requests are answered alike, and pods asked alike. What
// docs/ingress-nginx.md says to differ is not drawn, or not looked at.
func TestServesAsIngressNginx(t *testing.T) {
	beside(t)
	lab.Require(t)
	if _, err := os.Stat("/usr/lib/nginx/modules/ngx_http_lua_module.so"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skipf("%v; run `make packages` as root", err)
	}
	theirs, err := lab.NewIngressNginx(context.WithoutCancel(t.Context()), t.TempDir(), t.Logf)
	theirs = until(t, theirs, err)
	differ, seen := 0, map[string]int{"HTTP/1.1": 0, "HTTP/2.0": 0, "behind: Grpc-Status: ": 0, "pod copy: ": 0}
	for seed := range drawn(2, 60) {
		w := drawIngressWorld(t, throw(seed, 5))
		sides := [2]*served{w.byIngressNginx(theirs), w.byUs()}
		told := map[string]bool{} // hosts that differ
		for _, r := range w.requests {
			was, is := sides[0].ask(t, r), sides[1].ask(t, r)
			if _, err := strconv.Atoi(was[0]); err != nil && !w.refuses(r, was[0]) {
				t.Fatalf("world %d: %s: ingress-nginx does not answer: %s\n%s", seed, r, was[0], w.ingressesOf(r))
			}
			for sign := range seen {
				if slices.ContainsFunc(was, func(line string) bool { return strings.HasPrefix(line, sign) }) {
					seen[sign]++
				}
			}
			if r.grpc {
				was = inGRPC(was, is)
			}
			if alike(was, is) || told[r.host] {
				continue
			}
			told[r.host] = true
			t.Errorf("world %d: %s\ningress-nginx: %q\nwe:            %q\n%s", seed, r, except(was, is), except(is, was), w.ingressesOf(r))
			if differ++; differ > 5 {
				t.FailNow()
			}
		}
		w.close()
	}
	for sign, n := range seen {
		if n < 20 {
			t.Errorf("%d answers of ingress-nginx with %q: that compares too little", n, sign)
		}
	}
}

// refuses reports whether the world has reason to end a handshake in these words.
func (w *ingressWorld) refuses(r ingressRequest, why string) bool {
	switch {
	case strings.Contains(why, "unrecognized name"):
		return w.options["ssl-reject-handshake"] == "true"
	case strings.Contains(why, "no application protocol"):
		return w.options["use-http2"] == "false" && r.http2
	}
	return false
}

// alike reports whether ingress-nginx's answer and ours are the same, save that the host may have
// a certificate here alone: one that a younger Ingress brings.
func alike(theirs, ours []string) bool {
	i := slices.IndexFunc(theirs, func(line string) bool { return line == noCertificate || line == fallbackCertificate })
	if i >= 0 && len(ours) > i && strings.HasPrefix(ours[i], "certificate of ") {
		ours = slices.Clone(ours)
		ours[i] = theirs[i]
	}
	return slices.Equal(theirs, ours)
}

// except are those lines of a that b does not have.
func except(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(line string) bool { return slices.Contains(b, line) })
}

// served is who serves a world, and where.
type served struct {
	name     string
	clients  map[speaker]*http.Client
	ports    *regexp.Regexp // in what it says
	sessions sessions
	asked    int
}

// speaker is how a client speaks over TLS.
type speaker struct {
	as    string // whose certificate it shows; empty: nobody's
	http2 bool
}

// newServed is who serves a world at two addresses: for HTTP, and for HTTPS.
func (w *ingressWorld) newServed(name, plain, secure string) *served {
	s := &served{name: name, clients: map[speaker]*http.Client{}, sessions: sessions{}, ports: regexp.MustCompile(":(" + portOf(plain) + "|" + portOf(secure) + `)\b`)}
	to := func(address string) func(context.Context, string, string) (net.Conn, error) {
		return func(ctx context.Context, network, _ string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err == nil && w.passed != "" {
				_, err = fmt.Fprintf(c, "PROXY TCP4 %s 192.0.2.9 4321 %d\r\n", w.passed, map[bool]int{address == plain: 80, address == secure: 443}[true])
			}
			return c, err
		}
	}
	for as, shown := range w.certificates {
		for _, protocol := range []string{"http/1.1", "h2"} {
			transport := &http.Transport{DialContext: to(plain), DisableCompression: true, ForceAttemptHTTP2: protocol == "h2",
				DialTLSContext: func(ctx context.Context, network, named string) (net.Conn, error) {
					host, _, _ := strings.Cut(named, ":")
					c, err := to(secure)(ctx, network, named)
					if err != nil {
						return nil, err
					}
					return tls.Client(c, &tls.Config{ServerName: host, InsecureSkipVerify: true, NextProtos: []string{protocol},
						GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return shown, nil }}), nil
				}}
			s.clients[speaker{as, protocol == "h2"}] = &http.Client{Transport: transport, Timeout: 20 * time.Second,
				CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		}
	}
	return s
}

// byIngressNginx has ingress-nginx serve the world, and waits until its Lua knows the endpoints.
func (w *ingressWorld) byIngressNginx(n *lab.IngressNginx) *served {
	w.t.Helper()
	var ports [5]int
	for i, port := 0, 20_000; i < len(ports); port++ { // below those that others are given when they ask for any
		if l, err := net.Listen("tcp", fmt.Sprintf(":%d", port)); err == nil {
			l.Close()
			ports[i] = port
			i++
		}
	}
	if err := n.Serve(w.objects, w.flags, ports); err != nil {
		w.t.Fatal(err)
	}
	s := w.newServed("ingress-nginx", "127.0.0.1:"+strconv.Itoa(ports[0]), "127.0.0.1:"+strconv.Itoa(ports[1]))
	w.await(s)
	return s
}

// byUs has a proxy of ours serve it, which also serves the class of ingress-nginx.
func (w *ingressWorld) byUs() *served {
	w.t.Helper()
	_, plain, secure := w.start()
	s := w.newServed("quayside", plain, secure)
	w.await(s)
	return s
}

// start starts a proxy of ours with the world's objects, and returns where it listens.
func (w *ingressWorld) start() (files *cluster.Files, plain, secure string) {
	w.t.Helper()
	files, err := cluster.NewFiles(nil, nil, cluster.FilesOptions{NodeName: "here"})
	if err != nil {
		w.t.Fatal(err)
	}
	files.Put(w.objects...)
	p, err := proxy.New(proxy.Options{Source: files.Source, NodeName: "here", HTTP: "127.0.0.1:0", HTTPS: "127.0.0.1:0", HTTP2: true, AllowLoopback: true, Routes: w.routes()})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 2)
	go func() { done <- files.Run(ctx) }()
	go func() { done <- p.Run(ctx) }()
	w.ends = append(w.ends, func() {
		cancel()
		if err := cmp.Or(<-done, <-done); err != nil {
			w.t.Error(err)
		}
	})
	await(w.t, 30*time.Second, "proxy of ours that is ready", func() bool { return p.Ready() == nil })
	state, _ := p.State().(proxy.State)
	for _, l := range state.Listeners {
		if l.TLS {
			secure = l.Bound
		} else {
			plain = l.Bound
		}
	}
	return files, plain, secure
}

// routes are the switches of a proxy of ours, as those of ingress-nginx.
func (w *ingressWorld) routes() route.Options {
	named := func(flag string) snapshot.Key {
		space, name, _ := strings.Cut(flag, "/")
		return snapshot.Key{Namespace: space, Name: name}
	}
	return route.Options{
		Classes:   ingressclass.Rules{Adopt: []string{ingressclass.NginxController}},
		ConfigMap: named(w.flags.ConfigMap), DefaultBackend: named(w.flags.DefaultBackendService), DefaultCertificate: named(w.flags.DefaultSSLCertificate),
	}
}

// await waits until the pods of the world's first request are asked.
func (w *ingressWorld) await(s *served) {
	w.t.Helper()
	for _, client := range s.clients {
		w.ends = append(w.ends, client.CloseIdleConnections)
	}
	var said []string
	w.t.Cleanup(func() {
		if w.t.Failed() {
			w.t.Logf("%s: %q", s.name, said)
		}
	})
	await(w.t, 30*time.Second, s.name+" that serves", func() bool { said = s.ask(w.t, w.requests[0]); return said[0] == "200" })
}

// ingressRequest is what a client sends.
type ingressRequest struct {
	tls, http2   bool
	grpc         bool
	strict       bool   // if by TLS, the response has Strict-Transport-Security in both
	guarded      bool   // global-auth-url is set
	paged        string // custom-http-errors for all
	copies       *copies
	misnamed     bool // a targetPort may stand for a port, which pages are told by that name there
	session      string
	fails        bool // the first pod of the session does
	method, host string
	target, body string
	fields       http.Header
	as           string // see speaker
}

func (r ingressRequest) String() string {
	return fmt.Sprintf("%v %s %s://%s%s %v", speaker{r.as, r.http2}, r.method, r.scheme(), r.host, r.target, r.fields)
}

func (r ingressRequest) scheme() string {
	if r.tls {
		return "https"
	}
	return "http"
}

// ask sends a request and returns what matters of the response, as lines, with what the pod says
// that it was asked.
func (s *served) ask(t *testing.T, r ingressRequest) []string {
	t.Helper()
	request, err := http.NewRequest(r.method, r.scheme()+"://"+r.host, strings.NewReader(r.body))
	if err != nil {
		t.Fatal(err)
	}
	if r.body == "" {
		request.Body = http.NoBody
	}
	request.Header = r.fields.Clone()
	if request.URL.Opaque = r.target; strings.HasPrefix(r.target, "//") { // which would be an absolute one
		request.URL.Opaque, request.URL.Path = "", r.target
	}
	if r.session != "" {
		s.sessions.of(r.session).send(request, r.fails)
	}
	if s.asked++; r.copies != nil {
		request.Header.Set("X-Copy", fmt.Sprint(s.name, s.asked))
	}
	response, err := s.clients[speaker{r.as, r.tls && r.http2}].Do(request)
	if err != nil {
		return []string{err.Error()}
	}
	defer response.Body.Close()
	var body io.Reader = response.Body
	if response.Header.Get("Content-Encoding") == "gzip" && r.method != http.MethodHead {
		if body, err = gzip.NewReader(body); err != nil {
			return []string{err.Error()}
		}
	}
	said, err := io.ReadAll(body)
	if err != nil {
		return []string{err.Error()}
	}
	lines := []string{strconv.Itoa(response.StatusCode)}
	for name, values := range response.Header {
		if strings.HasPrefix(response.Header.Get("Location"), "https://login.example/") && name != "Location" && name != "Set-Cookie" {
			continue // a way to sign in has fields of its Ingress here alone
		}
		for _, value := range values {
			if line := answerField(name, s.ports.ReplaceAllString(value, ""), r); line != "" {
				lines = append(lines, line)
			}
		}
	}
	if response.TLS != nil {
		lines = append(lines, response.Proto, certificateOf(response.TLS))
	}
	for name, values := range response.Trailer {
		lines = append(lines, fmt.Sprintf("behind: %s: %q", name, values))
	}
	slices.Sort(lines[1:])
	if r.session != "" {
		said = []byte(s.sessions.of(r.session).keep(response, string(said)))
	}
	pod := s.ports.ReplaceAllString(string(said), "")
	if r.paged != "" && (strings.Contains(pod, "\nX-Code: ") || r.method == http.MethodHead && strings.Contains(r.paged, lines[0])) {
		lines = slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, ": ") }) // fields of its Ingress, here alone
	}
	if strings.HasPrefix(pod, podSays) {
		lines = append(lines, strings.Split(pod, "\n")...)
	}
	if r.misnamed {
		lines = slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "X-Service-Port: ") })
	}
	if r.copies != nil {
		asked := (lines[0] == "200" || lines[0] == "404") && !strings.HasPrefix(r.target, "/b") // of which there are none
		lines = append(lines, r.copies.of(fmt.Sprint(s.name, s.asked), asked)...)
	}
	return lines
}

// What is said of a host that has no certificate of its own: it has that which each makes for
// itself, or that of a flag.
const (
	noCertificate       = "certificate for no host"
	fallbackCertificate = "certificate of default/fallback"
)

// certificateOf says which Secret a host's certificate is of.
func certificateOf(c *tls.ConnectionState) string {
	name := c.PeerCertificates[0].Subject.CommonName
	if name == "pod" {
		return "certificate of the pod"
	}
	if space, _, _ := strings.Cut(name, "/"); slices.Contains(worldSpaces, space) || strings.HasSuffix(name, ".example") {
		return "certificate of " + name
	}
	return noCertificate
}

func portOf(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return port
}

// cookieValue is what a cookie is set to, and until when.
var cookieValue = regexp.MustCompile(`^([^=]+)=[^;]*|(Expires)=[^;]*`)

// answerField is a field of a response as far as it is compared; empty: not at all. Redirects that
// stay on the host may be paths, and those to https may keep the slash at their end.
func answerField(name, value string, r ingressRequest) string {
	switch name {
	case "Date", "Server", "Content-Type", "Content-Length", "X-Request-Id", "Vary", "Connection":
		return ""
	case "Strict-Transport-Security": // here hosts with a tls entry have it, where the client has TLS; there all, where nginx has
		if !r.strict || r.fields.Get("X-Forwarded-Proto") != "" {
			return ""
		}
	case "Set-Cookie":
		value = cookieValue.ReplaceAllString(value, "$1$2=")
	case "Location":
		value = strings.TrimSuffix(value, "/")
		if r.guarded { // who signs in for a host that nobody has is not said to have come from it, here
			value = strings.Replace(value, "="+r.scheme()+"://"+r.host, "=", 1)
		}
		if path, own := strings.CutPrefix(value, r.scheme()+"://"+r.host); own && (path == "" || path[0] == '/') {
			value = path
		}
	}
	return name + ": " + value
}

// podSays begins what a pod answers.
const podSays = "pod "

// notOfPods are fields that pods are sent by one alone, as docs/ingress-nginx.md says, or that are
// drawn or hop by hop.
var notOfPods = []string{"X-Request-Id", "X-Forwarded-Port", "X-Original-Forwarded-Host", "Content-Length", "Connection", "Accept-Encoding", "X-Copy"}

// startPod starts one that says what it was asked, and does as the query says: status, and fields
// whose names begin with f-. Where it is asked who may pass, it lets who has the field X-May.
func startPod(name string) *httptest.Server { return httptest.NewServer(pod(name)) }

func pod(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		for key, values := range query {
			if field, ok := strings.CutPrefix(key, "f-"); ok {
				w.Header()[http.CanonicalHeaderKey(field)] = values
			}
		}
		status, err := strconv.Atoi(query.Get("status"))
		if err != nil {
			status = http.StatusOK
		}
		if strings.HasPrefix(r.URL.Path, "/auth") {
			w.Header().Set("X-Auth-User", "somebody")
			w.Header().Set("X-Auth-Saw", r.Method+" "+r.Header.Get("X-Original-Method")+" "+r.Header.Get("X-Original-Url")+" "+r.Header.Get("X-Auth-Request-Redirect"))
			status, _ = strconv.Atoi(cmp.Or(r.Header.Get("X-May"), "401"))
		}
		if r.Header.Get("X-Code") != "" { // it answers for another: by GET and with all fields here
			r.Method, r.Body = http.MethodGet, http.NoBody
			for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Scheme", "X-Real-Ip", "X-Scheme", "X-Auth-User", "X-Asked", "X-Own", "X-Path", "X-Location", "X-Original-Forwarded-For"} {
				r.Header.Del(name)
			}
			if r.URL.Path != "/" { // what had no endpoint keeps its path, and has no such field there
				r.Header.Del("X-Original-Uri")
			}
		}
		w.WriteHeader(status)
		out := bufio.NewWriter(w)
		defer out.Flush()
		fmt.Fprintf(out, "%s%s: %s %s\nHost: %s\n", podSays, name, r.Method, r.RequestURI, r.Host)
		for _, not := range notOfPods {
			r.Header.Del(not)
		}
		r.Header.Write(out)
		if r.TLS != nil {
			fmt.Fprintf(out, "asked as %q", r.TLS.ServerName)
			if shown := r.TLS.PeerCertificates; len(shown) > 0 {
				fmt.Fprintf(out, " by %s", shown[0].Subject)
			}
			fmt.Fprintln(out)
		}
		io.Copy(out, r.Body)
	})
}

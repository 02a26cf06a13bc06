package route_test

import (
	stdcmp "cmp"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"flag"
	"fmt"
	"hash/maphash"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/manifest"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
	"quayside.io/proxy/route"
	"quayside.io/test/certificate"
)

var update = flag.Bool("update", false, "write what is answered into the scenario files")

// now is the day of every scenario.
var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// TestScenarios runs every file of test/scenario/route. A file has a head
// (comments and shorthands for objects and options), the objects under test
// after the first "---", and the sections "=== requests" and "=== problems".
// Shorthands:
//
//	service NS/NAME PORT[:NAME]...
//	external NS/NAME
//	certificate NS/NAME [rsa] [expired] HOST...
//	secret NS/NAME                        (a Secret without certificate)
//	htpasswd NS/NAME USER:HASH...
//	option class|adopt|classless|namespace|default-certificate VALUE
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("../../test/scenario/route/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenario found: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s := parseScenario(t, file, string(text))
			got := s.run(t)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(strings.Split(string(text), "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("the file wants -, the table answers +:\n%s", diff)
			}
		})
	}
}

type scenario struct {
	preamble string // everything before the requests
	requests []string
	objects  []snapshot.Object
	options  route.Options
}

func parseScenario(t *testing.T, file, text string) *scenario {
	t.Helper()
	before, after, ok := strings.Cut(text, "=== requests\n")
	requests, _, ok2 := strings.Cut(after, "=== problems\n")
	head, yaml, ok3 := strings.Cut(before, "\n---\n")
	if !ok || !ok2 || !ok3 {
		t.Fatalf("%s: want a head, ---, === requests and === problems", file)
	}
	s := &scenario{preamble: before, requests: strings.Split(strings.TrimSuffix(requests, "\n"), "\n")}
	s.options = route.Options{Now: now, FallbackCertificate: &tls.Certificate{Leaf: &x509.Certificate{Subject: pkix.Name{CommonName: "fallback"}}}}
	for line := range strings.Lines(head) {
		if words := strings.Fields(line); len(words) > 0 && words[0] != "#" {
			s.shorthand(t, words)
		}
	}
	read := manifest.Decode(file, []byte(yaml))
	for _, p := range read.Errors {
		t.Errorf("%s", p)
	}
	s.objects = append(s.objects, read.Objects...)
	return s
}

func (s *scenario) shorthand(t *testing.T, words []string) {
	t.Helper()
	namespace, name, _ := strings.Cut(words[1], "/")
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	switch words[0] {
	case "service":
		svc := &corev1.Service{ObjectMeta: meta}
		for _, p := range words[2:] {
			number, name, _ := strings.Cut(p, ":")
			n, err := strconv.ParseInt(number, 10, 32)
			if err != nil {
				t.Fatal(err)
			}
			svc.Spec.Ports = append(svc.Spec.Ports, corev1.ServicePort{Name: name, Port: int32(n), Protocol: corev1.ProtocolTCP})
		}
		s.objects = append(s.objects, svc)
	case "external":
		s.objects = append(s.objects, &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.org"}})
	case "htpasswd":
		s.objects = append(s.objects, &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"auth": []byte(strings.Join(words[2:], "\n"))}})
	case "secret":
		s.objects = append(s.objects, &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{corev1.TLSCertKey: []byte("no PEM")}})
	case "certificate":
		hosts, until, issue := words[2:], now.AddDate(0, 1, 0), certificate.Secret
		if hosts[0] == "rsa" {
			hosts, issue = hosts[1:], certificate.RSA
		}
		if hosts[0] == "expired" {
			hosts, until = hosts[1:], now.AddDate(0, -1, 0)
		}
		s.objects = append(s.objects, issue(t, words[1], until, hosts...))
	case "option":
		value := strings.Join(words[2:], " ")
		switch words[1] {
		case "class":
			s.options.Classes.Name = value
		case "adopt":
			s.options.Classes.Adopt = append(s.options.Classes.Adopt, value)
		case "namespace":
			s.options.Classes.Namespace = value
		case "default-certificate":
			namespace, name, _ := strings.Cut(value, "/")
			s.options.DefaultCertificate = snapshot.Key{Namespace: namespace, Name: name}
		default:
			t.Fatalf("no such option: %s", words[1])
		}
	default:
		t.Fatalf("no such shorthand: %s", words[0])
	}
}

// run returns the file as it would be if it were right.
func (s *scenario) run(t *testing.T) string {
	t.Helper()
	table := route.Compile(snapshot.Of(s.objects...), nil, s.options)
	var out strings.Builder
	out.WriteString(s.preamble + "=== requests\n")
	for _, line := range s.requests {
		request, rest, ok := strings.Cut(line, "=>")
		if !ok {
			out.WriteString(line + "\n")
			continue
		}
		_, comment, commented := strings.Cut(rest, "#")
		fmt.Fprintf(&out, "%s=> %s", request, answer(t, table, strings.TrimSpace(request)))
		if commented {
			out.WriteString("  #" + comment)
		}
		out.WriteString("\n")
	}
	out.WriteString("=== problems\n")
	for _, p := range table.Problems {
		out.WriteString(p.String() + "\n")
	}
	return out.String()
}

func answer(t *testing.T, table *route.Table, request string) string {
	t.Helper()
	if name, ok := strings.CutPrefix(request, "sni "); ok {
		var names []string
		for _, cert := range table.Certificates(strings.TrimSpace(name)) {
			names = append(names, cert.Leaf.Subject.CommonName)
		}
		if names == nil {
			return "none"
		}
		return strings.Join(names, ", ")
	}
	scheme, ex, ok := requestOf(t, strings.Fields(request))
	if !ok {
		return "400"
	}
	path := ex.Request.Path
	r, guard := table.Match(&ex.Request)
	if guard != nil && guard.Closed != "" {
		r = guard
	}
	switch {
	case r == nil:
		return "404"
	case r.RedirectsToTLS(path) && scheme == "http":
		return "308"
	case r.Closed != "":
		if r.Backend != -1 {
			t.Errorf("%s: a closed route leads to backend %d", request, r.Backend)
		}
		return "503 " + r.Closed
	}
	told := filtered(ex, r, guard)
	if ex.Response.Status != 0 {
		return told
	}
	if r.NoRule {
		return "404" + told
	}
	b := table.Backends[r.Lead(ex.Request.Random[1])]
	if b.Service != r.Service {
		t.Errorf("%s: route of Service %s leads to %s", request, r.Service, b.Service)
	}
	answer := b.Service.String() + ":" + b.Port.String()
	if b.AnyNode {
		answer += " on any node"
	}
	return answer + told
}

// requestOf reads a request: a URL, then perhaps from=ADDRESS, random=N, a METHOD,
// and NAME:VALUE for each header.
func requestOf(t *testing.T, words []string) (scheme string, ex *exchange.Exchange, ok bool) {
	t.Helper()
	scheme, rest, _ := strings.Cut(words[0], "://")
	host, target := rest, "/"
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		host, target = rest[:i], rest[i:]
	}
	if host == "<none>" {
		host = ""
	}
	ex = &exchange.Exchange{Request: exchange.Request{Method: []byte("GET"), Host: []byte(host), Target: []byte(target), TLS: scheme == "https"}}
	ex.Request.Client = netip.MustParseAddrPort("192.0.2.1:5000")
	for _, word := range words[1:] {
		name, value, header := strings.Cut(word, ":")
		switch {
		case strings.HasPrefix(word, "from="):
			ex.Request.Client = netip.AddrPortFrom(netip.MustParseAddr(word[5:]), 5000)
		case strings.HasPrefix(word, "random="):
			n, _ := strconv.Atoi(word[7:])
			ex.Request.Random[0] = uint64(n)
		case header:
			ex.Request.Header.Add(name, strings.ReplaceAll(value, "_", " "))
		default:
			ex.Request.Method = []byte(word)
		}
	}
	ex.Request.Path, ok = route.Normalize(nil, []byte(target))
	return scheme, ex, ok
}

// filtered says what the filters of r make of a request, after the guards of
// another route that it must pass.
func filtered(ex *exchange.Exchange, r, guard *route.Route) string {
	tools := filter.NewTools(maphash.MakeSeed()) // which nobody can be asked with
	target := string(ex.Request.Target)
	if guard != nil && guard.Filters != nil && !filter.Guards(guard.Filters, tools).Request(ex) {
		return fmt.Sprint(ex.Response.Status, " of path ", guard.Path)
	}
	tools.Place = r.Place()
	chain := filter.Compile(r.Filters, filter.Host{}, tools)
	passed := chain.Request(ex)
	chain.Response(ex)
	var words []string
	if !passed {
		words = append(words, strconv.Itoa(ex.Response.Status))
	} else {
		words = append(words, "")
		if now := string(ex.Request.Target); now != target {
			words = append(words, "as", now)
		}
	}
	for _, name := range []string{"Location", "WWW-Authenticate", "Access-Control-Allow-Origin"} {
		if v := ex.Response.Header.Get(name); v != nil {
			words = append(words, fmt.Sprintf("%s=%s", name, v))
		}
	}
	for _, name := range []string{"X-Forwarded-Prefix"} {
		if v := ex.Request.Header.Get(name); v != nil {
			words = append(words, fmt.Sprintf("%s=%s", name, v))
		}
	}
	return strings.TrimRight(strings.Join(words, " "), " ")
}

// match returns the route that answers a GET: where a guard stands before it, that.
func match(t *route.Table, host, path string) *route.Route {
	found, guard := t.Match(&exchange.Request{Method: []byte("GET"), Host: []byte(host), Target: []byte(path), Path: []byte(path)})
	return stdcmp.Or(guard, found)
}

// messages are what the owners of objects are told, a line each.
func messages(t *route.Table) string {
	var told strings.Builder
	for _, p := range t.Problems {
		fmt.Fprintln(&told, p.Message)
	}
	return told.String()
}

// TestEveryRequestOfAScenarioIsReadable keeps the scenario files honest: a line
// that is neither blank, comment nor request would be passed over.
func TestEveryRequestOfAScenarioIsReadable(t *testing.T) {
	files, _ := filepath.Glob("../../test/scenario/route/*.txt")
	for _, file := range files {
		text, _ := os.ReadFile(file)
		_, after, _ := strings.Cut(string(text), "=== requests\n")
		requests, _, _ := strings.Cut(after, "=== problems\n")
		n := 0
		for line := range strings.Lines(requests) {
			request, _, ok := strings.Cut(line, "=>")
			switch {
			case ok:
				n++
				if u := strings.TrimSpace(request); !strings.HasPrefix(u, "sni ") && !strings.HasPrefix(u, "http") {
					t.Errorf("%s: %q is neither a URL nor a server name", file, u)
				}
			case strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#"):
				t.Errorf("%s: %q has no =>", file, strings.TrimSpace(line))
			}
		}
		if n == 0 {
			t.Errorf("%s asks nothing", file)
		}
	}
}

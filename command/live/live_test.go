package live

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/command/explain"
	"quayside.io/test/certificate"
)

// leadingTo is a path with these ends, and a Service whose pods answer.
func leadingTo(ends ...netip.AddrPort) *explain.Path {
	return &explain.Path{Ends: ends, Backend: "shop/cart"}
}

// quick are Limits that a test can wait for.
func quick() Limits { return Limits{Connect: time.Second, Answer: 300 * time.Millisecond, Ends: 2} }

// at is where a listener listens.
func at(t *testing.T, l net.Listener) netip.AddrPort {
	t.Helper()
	a, err := netip.ParseAddrPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// listen returns a listener on loopback that lives until the test ends.
func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// serving returns where a handler serves, over TLS with the certificate of a Secret if
// there is one.
func serving(t *testing.T, secret *corev1.Secret, handler http.HandlerFunc) netip.AddrPort {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = nil
	if secret == nil {
		server.Start()
	} else {
		cert, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
		if err != nil {
			t.Fatal(err)
		}
		server.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
		server.StartTLS()
	}
	t.Cleanup(server.Close)
	return at(t, server.Listener)
}

// has reports whether there is a link of that name and state that says that.
func has(links []explain.Link, name string, state explain.State, says string) bool {
	return slices.ContainsFunc(links, func(l explain.Link) bool {
		return l.Name == name && l.State == state && strings.Contains(l.Says, says)
	})
}

func TestLook(t *testing.T) {
	year := time.Now().AddDate(1, 0, 0)
	own := certificate.Secret(t, "a/own", year, "localhost")
	old := certificate.Secret(t, "a/old", time.Now().Add(-time.Minute), "localhost")
	others := certificate.Secret(t, "a/others", year, "shop.example.com")
	away := serving(t, nil, func(w http.ResponseWriter, r *http.Request) { t.Errorf("a redirect was followed: %s", r.URL) })
	answer := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Server", "pod")
			if code == http.StatusFound {
				w.Header().Set("Location", "http://"+away.String()+"/")
			}
			w.WriteHeader(code)
			fmt.Fprint(w, r.Method, " ", r.URL.Path)
		}
	}
	endless := func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(make([]byte, 1<<10)); err != nil {
				return
			}
		}
	}
	told := func(kind, body string) netip.AddrPort {
		return serving(t, nil, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			status := http.StatusBadGateway
			if strings.HasPrefix(body, "504 ") {
				status = http.StatusGatewayTimeout
			}
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		})
	}
	silent := listen(t)
	closed := listen(t)
	nobody := at(t, closed)
	closed.Close()
	plain := serving(t, nil, answer(200))
	for name, c := range map[string]struct {
		target string
		end    netip.AddrPort
		link   string
		state  explain.State
		says   string
	}{
		"answered":    {"http://localhost/cart", plain, "live http", explain.Works, "answers 200 OK in "},
		"by whom":     {"http://localhost/cart", plain, "live http", explain.Works, ", Server: pod"},
		"in DNS":      {"http://localhost/", plain, "live name", explain.Works, "localhost is "},
		"not found":   {"http://localhost/", serving(t, nil, answer(404)), "live http", explain.Works, "answers 404 Not Found"},
		"redirected":  {"http://localhost/", serving(t, nil, answer(302)), "live http", explain.Works, "which is not followed"},
		"unavailable": {"http://localhost/", serving(t, nil, answer(503)), "live http", explain.Broken, "answers 503 Service Unavailable"},
		"plain pods": {"http://localhost/", told("text/plain; charset=utf-8", "502 Bad Gateway: the TLS handshake with Service a/web failed\n"), "live http", explain.Broken,
			"the TLS handshake with Service a/web failed; its pods do not serve TLS there, or not as it is asked for: let them, or correct the annotation backend-protocol"},
		"plain pods, named by the path": {"http://localhost/", told("text/plain", "502 Bad Gateway: the TLS handshake with the service failed\n"), "live http", explain.Broken,
			": the TLS handshake with Service shop/cart failed; its pods"},
		"refusing pods": {"http://localhost/", told("text/plain", "502 Bad Gateway: Service a/web refused the connection\n"), "live http", explain.Broken,
			"Service a/web refused the connection; let its pods listen"},
		"pods that are kept away": {"http://localhost/", told("text/plain", "504 Gateway Timeout: Service a/web did not accept a connection in time\n"), "live http", explain.Broken,
			"Service a/web did not accept a connection in time; something drops what the proxies send: see that no policy"},
		"another reason": {"http://localhost/", told("text/plain", "502 Bad Gateway: told\x1b[2J\nmore"), "live http", explain.Broken, `: told\x1b[2J`},
		"a page":         {"http://localhost/", told("text/html", "<h1>it is broken</h1>"), "live http", explain.Broken, "answers 502 Bad Gateway in "},
		"endless":        {"http://localhost/", serving(t, nil, endless), "live http", explain.Works, "answers 200 OK"},
		"silent":         {"http://localhost/", at(t, silent), "live http", explain.Broken, "no answer within 300ms"},
		"refused":        {"http://localhost/", nobody, "live connect", explain.Broken, "refused"},
		"covered":        {"https://localhost/", serving(t, own, answer(200)), "live tls", explain.Works, "serves a certificate for localhost until " + year.UTC().Format("2006-01-02")},
		"not trusted":    {"https://localhost/", serving(t, own, answer(200)), "live tls", explain.Works, "this machine does not trust who signed it"},
		"over TLS":       {"https://localhost/", serving(t, own, answer(200)), "live http", explain.Works, "answers 200 OK"},
		"of another":     {"https://localhost/", serving(t, others, answer(200)), "live tls", explain.Broken, "serves a certificate for shop.example.com"},
		"not covered":    {"https://localhost/", serving(t, others, answer(200)), "live tls", explain.Broken, "it does not cover localhost"},
		"expired":        {"https://localhost/", serving(t, old, answer(200)), "live tls", explain.Broken, "it has expired"},
		"no TLS":         {"https://localhost/", plain, "live tls", explain.Broken, "the handshake for localhost fails"},
		"a Service":      {"service/shop/web", plain, "live connect", explain.Works, plain.String() + " in "},
		"another's name": {"http://localhost/", netip.MustParseAddrPort("127.9.9.9:1"), "live name", explain.Unknown, "not where this path begins"},
	} {
		t.Run(name, func(t *testing.T) {
			if links := Look(t.Context(), c.target, leadingTo(c.end), quick()); !has(links, c.link, c.state, c.says) {
				t.Errorf("want %s %q with %q: %+v", c.link, c.state, c.says, links)
			}
		})
	}
	for _, silent := range []netip.AddrPort{told("text/html", "502 Bad Gateway: spoken\n"), told("text/plain", "spoken\n"), told("text/plain", "503 Service Unavailable: spoken\n")} {
		if links := Look(t.Context(), "http://localhost/", leadingTo(silent), quick()); has(links, "live http", explain.Broken, "spoken") {
			t.Errorf("what is no reason of ours is shown: %+v", links)
		}
	}
	if links := Look(t.Context(), "service/shop/web", leadingTo(plain), quick()); len(links) != 1 {
		t.Errorf("a Service is only connected to: %+v", links)
	}
}

// Where a path ends nowhere a URL is looked for in DNS; of very many ends a few are
// asked, and it is said.
func TestLookWhereThereAreNoEndsOrMany(t *testing.T) {
	asked := serving(t, nil, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Host) })
	host := fmt.Sprintf("localhost:%d", asked.Port())
	if links := Look(t.Context(), "http://"+host+"/", leadingTo(), quick()); !has(links, "live http", explain.Works, "answers 200 OK") {
		t.Errorf("a name that leads somewhere: %+v", links)
	}
	if links := Look(t.Context(), "http://"+asked.String()+"/", leadingTo(), quick()); !has(links, "live http", explain.Works, "answers 200 OK") {
		t.Errorf("an address: %+v", links)
	}
	if links := Look(t.Context(), "service/shop/web", leadingTo(), quick()); !has(links, "live connect", explain.Unknown, "no address") {
		t.Errorf("nothing to connect to: %+v", links)
	}
	links := Look(t.Context(), "service/shop/web", leadingTo(asked, asked, asked, asked), quick())
	if len(links) != 3 || !has(links, "live connect", explain.Unknown, "2 more were not asked") {
		t.Errorf("four ends where two are asked: %+v", links)
	}
}

package proxy_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/cluster"
	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/manifest"
	"quayside.io/proxy"
	"quayside.io/test/certificate"
)

// conformanceCase is a request of the Ingress conformance suite, and the Service whose
// pod answers it, or the status.
type conformanceCase struct{ name, method, scheme, host, path, want string }

// TestConformance sends the 30 cases of the Ingress conformance suite, as the scenarios
// of package route have them, over the wire: over HTTP/1.1 and HTTP/2, in the clear,
// where only one of them is spoken and where both are, and over TLS, to Ingresses of a
// class of ours and of an adopted one.
func TestConformance(t *testing.T) {
	files, err := filepath.Glob("../test/scenario/route/conformance-*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for profile, class := range map[string]string{"ours": ingressclass.DefaultName, "nginx": ingressclass.NginxName} {
		t.Run(profile, func(t *testing.T) {
			asked := 0
			for _, file := range files {
				t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
					text, err := os.ReadFile(file)
					if err != nil {
						t.Fatal(err)
					}
					head, rest, _ := strings.Cut(string(text), "\n---\n")
					objects, requests, _ := strings.Cut(rest, "=== requests\n")
					store, p := start(t, func(o *proxy.Options) {
						o.HTTP2, o.H2C, o.Listeners = true, true, alsoDirect
						o.Routes.Classes.Adopt = []string{ingressclass.NginxController}
					})
					putConformance(t, store, head, objects, class)
					asked += askConformance(t, p, casesOf(requests), class)
				})
			}
			if asked != 30 {
				t.Errorf("%d cases were asked, want 30", asked)
			}
		})
	}
}

// putConformance makes the objects of a scenario, and a pod behind each Service.
func putConformance(t *testing.T, store *cluster.Files, head, objects, class string) {
	t.Helper()
	for line := range strings.Lines(head) {
		words := strings.Fields(line)
		switch words[0] {
		case "service":
			name := strings.TrimPrefix(words[1], "default/")
			number, portName, _ := strings.Cut(words[2], ":")
			port, err := strconv.ParseInt(number, 10, 32)
			if err != nil {
				t.Fatal(err)
			}
			pod := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				fmt.Fprintf(w, "%s %s %s %s", name, r.Method, r.URL.Path, body)
			}))
			t.Cleanup(pod.Close)
			store.Put(service(name, corev1.ServicePort{Name: portName, Port: int32(port)}), slice(name, portName, strings.TrimPrefix(pod.URL, "http://")))
		case "certificate":
			store.Put(certificate.Secret(t, words[1], time.Now().Add(time.Hour), words[2:]...))
		case "#":
		default:
			t.Fatalf("a scenario says %q", line)
		}
	}
	read := manifest.Decode("objects", []byte(objects))
	if len(read.Errors) > 0 {
		t.Fatal(read.Errors)
	}
	for _, o := range read.Objects {
		if ing, ok := o.(*networkingv1.Ingress); ok {
			if *ing.Spec.IngressClassName == ingressclass.DefaultName {
				ing.Spec.IngressClassName = &class
			}
			// The suite wants no redirect, which is nginx's default.
			ing.Annotations = map[string]string{"nginx.ingress.kubernetes.io/ssl-redirect": "false"}
		}
	}
	store.Put(read.Objects...)
}

// casesOf reads the requests of a scenario: "URL => OUTCOME # NAME METHOD".
func casesOf(requests string) (list []conformanceCase) {
	for line := range strings.Lines(requests) {
		url, rest, ok := strings.Cut(line, "=>")
		if !ok || strings.HasPrefix(line, "sni ") {
			continue
		}
		outcome, comment, _ := strings.Cut(rest, "#")
		c := conformanceCase{name: strings.TrimSpace(comment), method: http.MethodGet, want: strings.TrimSpace(outcome)}
		c.scheme, url, _ = strings.Cut(strings.TrimSpace(url), "://")
		var path string
		c.host, path, _ = strings.Cut(url, "/")
		c.path = "/" + path
		if words := strings.Fields(comment); len(words) > 1 && slices.Contains([]string{"GET", "POST", "PUT", "DELETE", "PATCH"}, words[1]) {
			c.method = words[1]
		}
		c.want, _, _ = strings.Cut(strings.TrimPrefix(c.want, "default/"), ":")
		list = append(list, c)
	}
	return list
}

func askConformance(t *testing.T, p *proxy.Proxy, cases []conformanceCase, class string) int {
	t.Helper()
	insecure := &tls.Config{InsecureSkipVerify: true}
	overTLS, overHTTP2 := &http.Transport{TLSClientConfig: insecure}, &http.Transport{TLSClientConfig: insecure.Clone(), ForceAttemptHTTP2: true}
	t.Cleanup(overTLS.CloseIdleConnections)
	t.Cleanup(overHTTP2.CloseIdleConnections)
	last, direct := cases[len(cases)-1], boundDirect(t, p)
	eventually(t, "the routes are served", func() bool {
		for _, c := range cases {
			if c.want != "404" && c.scheme == "http" {
				last = c
			}
		}
		code, _ := get(t, bound(p, false), last.host, last.path)
		return code == 200
	})
	for _, c := range cases {
		text := ""
		if c.method != http.MethodGet {
			text = "text"
		}
		for _, by := range []struct {
			name, addr, scheme, proto string
			rt                        http.RoundTripper
		}{
			{"HTTP1", bound(p, false), "http", "HTTP/1.1", http.DefaultTransport},
			{"HTTP1 alone", direct, "http", "HTTP/1.1", http.DefaultTransport},
			{"HTTP2", bound(p, false), "http", "HTTP/2.0", unencryptedHTTP2(t)},
			{"HTTP1 over TLS", bound(p, true), "https", "HTTP/1.1", overTLS},
			{"HTTP2 over TLS", bound(p, true), "https", "HTTP/2.0", overHTTP2},
		} {
			if c.scheme == "https" && by.scheme == "http" {
				continue
			}
			t.Run(c.name+" "+by.name, func(t *testing.T) {
				req, err := http.NewRequest(c.method, by.scheme+"://"+by.addr+c.path, strings.NewReader(text))
				if err != nil {
					t.Fatal(err)
				}
				if c.host != "<none>" {
					req.Host = c.host
				}
				resp, err := by.rt.RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				body, err := io.ReadAll(resp.Body)
				if err != nil || resp.Proto != by.proto {
					t.Fatal(resp.Proto, err)
				}
				if class == ingressclass.NginxName && c.name == "P14" { // there it is not its path without the slash
					if to := resp.Header.Get("Location"); resp.StatusCode != 301 || to != c.path+"/" {
						t.Errorf("%d to %q, want to be sent to the path with a slash", resp.StatusCode, to)
					}
				} else if c.want == "404" {
					if resp.StatusCode != 404 {
						t.Errorf("%d %s, want a 404", resp.StatusCode, body)
					}
				} else if want := fmt.Sprintf("%s %s %s %s", c.want, c.method, c.path, text); resp.StatusCode != 200 || string(body) != want {
					t.Errorf("%d %q, want %q", resp.StatusCode, body, want)
				}
				for _, name := range []string{"Content-Length", "Content-Type", "Date", "Server"} {
					if resp.Header.Get(name) == "" {
						t.Errorf("the response has no %s", name)
					}
				}
			})
		}
	}
	return len(cases)
}

package proxy_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
)

// Early hints of pods, whichever protocol they speak, go to clients of HTTP/2; those
// of HTTP/1.1 might take them for the response. Only what hints at something goes.
func TestEarlyHints(t *testing.T) {
	files, p := start(t, func(o *proxy.Options) { o.HTTP2, o.H2C = true, true })
	var objects []snapshot.Object
	for _, name := range []string{"one", "two"} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", "</a.css>; rel=preload")
			w.Header().Set("X-Secret", "x")
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Set("Link", "</b.css>; rel=preload")
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusProcessing)
			io.WriteString(w, "fine")
		}))
		s.Config.Protocols = new(http.Protocols)
		s.Config.Protocols.SetHTTP1(name == "one")
		s.Config.Protocols.SetUnencryptedHTTP2(name == "two")
		s.Start()
		t.Cleanup(s.Close)
		ing := ingress(name, name+".example", "/", name, number)
		if name == "two" {
			ing.Annotations = map[string]string{"ingress.quayside.io/backend-protocol": "H2C"}
		}
		objects = append(objects, service(name, corev1.ServicePort{Port: 80}), slice(name, "", strings.TrimPrefix(s.URL, "http://")), ing)
	}
	files.Put(objects...)
	addr := bound(p, false)
	for _, host := range []string{"one.example", "two.example"} {
		eventually(t, "the route is served", func() bool { code, _ := get(t, addr, host, "/"); return code == 200 })
		for _, by := range []struct {
			rt   http.RoundTripper
			want []string
		}{{http.DefaultTransport, nil}, {unencryptedHTTP2(t), []string{"103 </a.css>; rel=preload", "103 </b.css>; rel=preload"}}} {
			var got []string
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
				if len(h) != 1 || code != http.StatusEarlyHints {
					t.Errorf("%s: %d %v", host, code, h)
				}
				got = append(got, "103 "+h.Get("Link"))
				return nil
			}})
			req, err := http.NewRequestWithContext(ctx, "GET", "http://"+addr+"/", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = host
			resp, err := by.rt.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || resp.StatusCode != 200 || string(body) != "fine" || !slices.Equal(got, by.want) {
				t.Errorf("%s over %s: %d %q, %v, hints %q, want %q", host, resp.Proto, resp.StatusCode, body, err, got, by.want)
			}
		}
	}
}

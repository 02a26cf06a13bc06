package proxy_test

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/andybalholm/brotli"
	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
)

// compressible answers as its path says. /events sends one event for each value
// that it is handed, until its client has gone.
func compressible(events map[string]chan string, ended *sync.WaitGroup) http.Handler {
	page := strings.Repeat("<p>much the same</p>\n", 50_000)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("ETag", `"tag"`)
		h.Set("Accept-Ranges", "bytes")
		switch r.URL.Path {
		case "/events":
			defer ended.Done()
			h.Set("Content-Type", "text/event-stream")
			for {
				select {
				case event := <-events[r.URL.RawQuery]:
					io.WriteString(w, event)
					w.(http.Flusher).Flush()
				case <-r.Context().Done():
					return
				}
			}
		case "/transformed":
			h.Set("Cache-Control", "public, no-transform")
		case "/encoded":
			h.Set("Content-Encoding", "zstd")
		case "/image":
			h.Set("Content-Type", "image/png")
		case "/weak":
			h.Set("ETag", `W/"tag"`)
			h.Set("Vary", "Cookie")
		case "/varied":
			h.Set("Vary", "Cookie, accept-encoding")
		case "/digest":
			h.Set("Content-Digest", "sha-256=:AAAA:")
		case "/part":
			h.Set("Content-Range", "bytes 0-999/1050000")
			w.WriteHeader(206)
			io.WriteString(w, page[:1000])
			return
		case "/none":
			w.WriteHeader(204)
			return
		case "/404", "/403", "/500", "/201":
			status := 0
			fmt.Sscanf(r.URL.Path, "/%d", &status)
			w.WriteHeader(status)
		case "/short":
			h.Set("Content-Length", "5")
			io.WriteString(w, "short")
			return
		case "/broken":
			io.WriteString(w, page)
			panic(http.ErrAbortHandler)
		}
		io.WriteString(w, page)
	})
}

// startCompressing returns the address of a proxy that compresses.
func startCompressing(t *testing.T, web string) string {
	files, p := start(t, func(o *proxy.Options) {
		o.HTTP2, o.H2C = true, true
		o.Routes.ConfigMap = snapshot.Key{Namespace: "default", Name: "wide"}
	})
	files.Put(configMap("wide", "use-gzip", "true", "enable-brotli", "true", "gzip-types", "text/event-stream", "brotli-types", "text/event-stream"),
		service("web", corev1.ServicePort{Port: 80}), slice("web", "", web), ingress("web", "zip.test", "/", "web", number))
	addr := bound(p, false)
	eventually(t, "the route is served", func() bool { code, _ := get(t, addr, "zip.test", "/short"); return code == 200 })
	return addr
}

// frontEnds are clients of both.
func frontEnds(t *testing.T) map[string]http.RoundTripper {
	return map[string]http.RoundTripper{"HTTP/1.1": http.DefaultTransport, "HTTP/2.0": unencryptedHTTP2(t)}
}

func decoded(t *testing.T, encoding string, r io.Reader) io.Reader {
	switch encoding {
	case "br":
		return brotli.NewReader(r)
	case "gzip":
		z, err := gzip.NewReader(r)
		if err != nil {
			t.Fatal(err)
		}
		return z
	}
	return r
}

// TestCompression asks for what is compressed, and what must not be, through both
// front ends.
func TestCompression(t *testing.T) {
	web := httptest.NewServer(compressible(nil, nil))
	defer web.Close()
	addr := startCompressing(t, strings.TrimPrefix(web.URL, "http://"))
	page := strings.Repeat("<p>much the same</p>\n", 50_000)
	for name, via := range frontEnds(t) {
		for _, k := range []struct {
			method, path, accept string
			encoding, etag, vary string
		}{
			{"GET", "/", "gzip", "gzip", `W/"tag"`, "Accept-Encoding"},
			{"GET", "/", "gzip, br", "br", `W/"tag"`, "Accept-Encoding"},
			{"GET", "/", "identity", "", `"tag"`, "Accept-Encoding"},
			{"GET", "/weak", "br", "br", `W/"tag"`, "Cookie|Accept-Encoding"},
			{"GET", "/varied", "br", "br", `W/"tag"`, "Cookie, accept-encoding"},
			{"GET", "/404", "br", "br", `W/"tag"`, "Accept-Encoding"},
			{"GET", "/403", "gzip", "gzip", `W/"tag"`, "Accept-Encoding"},
			{"GET", "/500", "gzip", "", `"tag"`, ""},
			{"GET", "/201", "gzip", "", `"tag"`, ""},
			{"HEAD", "/", "gzip", "gzip", `W/"tag"`, "Accept-Encoding"},
			{"HEAD", "/", "identity", "", `"tag"`, "Accept-Encoding"},
			{"HEAD", "/short", "gzip", "", `"tag"`, ""},
			{"GET", "/transformed", "gzip", "", `"tag"`, ""},
			{"GET", "/encoded", "gzip", "zstd", `"tag"`, ""},
			{"GET", "/image", "gzip", "", `"tag"`, ""},
			{"GET", "/digest", "gzip", "", `"tag"`, ""},
			{"GET", "/part", "gzip", "", `"tag"`, ""},
			{"GET", "/none", "gzip", "", `"tag"`, ""},
			{"GET", "/short", "gzip", "", `"tag"`, ""},
		} {
			req, _ := http.NewRequest(k.method, "http://"+addr+k.path, nil)
			req.Host = "zip.test"
			req.Header.Set("Accept-Encoding", k.accept)
			resp, err := via.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			coding, want := k.encoding, page
			if k.method == "HEAD" {
				coding, want = "", ""
			}
			body, err := io.ReadAll(decoded(t, coding, resp.Body))
			resp.Body.Close()
			h := resp.Header
			if err != nil || resp.Proto != name || h.Get("Content-Encoding") != k.encoding || h.Get("ETag") != k.etag || strings.Join(h.Values("Vary"), "|") != k.vary {
				t.Errorf("%s %s %s by %s: %s, %v, %v", name, k.method, k.path, k.accept, resp.Status, h, err)
			}
			if k.encoding != "" && k.encoding != "zstd" && (string(body) != want || resp.ContentLength >= 0 || h.Get("Accept-Ranges") != "") {
				t.Errorf("%s %s: %d bytes, of length %d, accept-ranges %q", name, k.path, len(body), resp.ContentLength, h.Get("Accept-Ranges"))
			}
		}
		req, _ := http.NewRequest("GET", "http://"+addr+"/broken", nil)
		req.Host = "zip.test"
		req.Header.Set("Accept-Encoding", "gzip")
		resp, err := via.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, resp.Body); err == nil {
			t.Errorf("%s: a response that breaks off ends well after %d bytes", name, n)
		}
		resp.Body.Close()
	}
}

// TestCompressedEvents: an event arrives before there is another, and a client that
// leaves is left.
func TestCompressedEvents(t *testing.T) {
	events := map[string]chan string{}
	var ended sync.WaitGroup
	for name := range frontEnds(t) {
		for _, encoding := range []string{"gzip", "br"} {
			events[name+encoding] = make(chan string, 1)
			ended.Add(1)
		}
	}
	web := httptest.NewServer(compressible(events, &ended))
	defer web.Close()
	addr := startCompressing(t, strings.TrimPrefix(web.URL, "http://"))
	for name, via := range frontEnds(t) {
		for _, encoding := range []string{"gzip", "br"} {
			feed := events[name+encoding]
			feed <- "data: 0\n\n"
			req, _ := http.NewRequest("GET", "http://"+addr+"/events?"+name+encoding, nil)
			req.Host = "zip.test"
			req.Header.Set("Accept-Encoding", encoding)
			resp, err := via.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			text := decoded(t, encoding, resp.Body)
			for i := range 3 {
				if i > 0 {
					feed <- fmt.Sprintf("data: %d\n\n", i)
				}
				got := make([]byte, len("data: 0\n\n"))
				if _, err := io.ReadFull(text, got); err != nil || string(got) != fmt.Sprintf("data: %d\n\n", i) || resp.Header.Get("Content-Encoding") != encoding {
					t.Fatalf("%s %s: %q, %v, %v", name, encoding, got, resp.Header, err)
				}
			}
			resp.Body.Close()
		}
	}
	ended.Wait()
}

// TestCompressedForOldClients: HTTP/1.0 has no chunks.
func TestCompressedForOldClients(t *testing.T) {
	web := httptest.NewServer(compressible(nil, nil))
	defer web.Close()
	addr := startCompressing(t, strings.TrimPrefix(web.URL, "http://"))
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "GET / HTTP/1.0\r\nHost: zip.test\r\nAccept-Encoding: gzip\r\n\r\n")
	r := bufio.NewReader(c)
	var head []string
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if line == "\r\n" {
			break
		}
		head = append(head, line)
	}
	body, err := io.ReadAll(decoded(t, "gzip", r))
	if err != nil || len(body) != 50_000*len("<p>much the same</p>\n") || !slices.Contains(head, "Content-Encoding: gzip\r\n") || slices.Contains(head, "Transfer-Encoding: chunked\r\n") {
		t.Errorf("%d bytes, %q, %v", len(body), head, err)
	}
}

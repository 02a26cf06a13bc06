package proxy_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster"
	"quayside.io/proxy"
)

// flow answers requests and says what came: how it was framed, how long it is and
// which fields matter.
func flow(asked *atomic.Int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host == "gather.test" {
			asked.Add(1)
		}
		if r.URL.Path == "/large" {
			w.Write(make([]byte, 24<<10))
			return
		}
		if r.URL.Path == "/early" {
			answerEarly(w)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err == nil {
			io.WriteString(w, r.Header.Get("Upgrade")+" length="+r.Header.Get("Content-Length")+" coding="+strings.Join(r.TransferEncoding, ",")+
				" sum="+string(body[:min(len(body), 8)])+" trailer="+r.Trailer.Get("X-Sum"))
		}
	})
}

// answerEarly does not wait for the body.
func answerEarly(w http.ResponseWriter) {
	c, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer c.Close()
	io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nearly")
	io.Copy(io.Discard, rw)
}

func startFlow(t *testing.T) (files *cluster.Files, p *proxy.Proxy, asked *atomic.Int64) {
	files, p = start(t, nil)
	asked = &atomic.Int64{}
	backend := httptest.NewServer(flow(asked))
	t.Cleanup(backend.Close)
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", strings.TrimPrefix(backend.URL, "http://")),
		annotated("gather", "gather.test", map[string]string{"proxy-request-buffering": "on", "proxy-body-size": "4m"}),
		annotated("stream", "stream.test", map[string]string{"proxy-request-buffering": "off"}),
		annotated("plain", "connection.test", map[string]string{"connection-proxy-header": "keep-alive"}),
		annotated("upgrade", "upgrade.test", map[string]string{"connection-proxy-header": "upgrade"}),
		annotated("rate", "rate.test", map[string]string{"limit-rate": "16"}),
		annotated("after", "after.test", map[string]string{"limit-rate": "1", "limit-rate-after": "24"}))
	eventually(t, "the routes are served", func() bool { code, _ := get(t, bound(p, false), "after.test", "/"); return code == 200 })
	return files, p, asked
}

// A body is gathered before the backend is asked, and a chunked one has a length
// then, unless a trailer came with it.
func TestProxyRequestBuffering(t *testing.T) {
	_, p, asked := startFlow(t)
	addr := bound(p, false)
	dial := func(text string) (net.Conn, *bufio.Reader) {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		io.WriteString(c, text)
		return c, bufio.NewReader(c)
	}
	answer := func(r *bufio.Reader) (int, string) {
		t.Helper()
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body)
	}
	const chunked = "POST /early HTTP/1.1\r\nTransfer-Encoding: chunked\r\nHost: "
	begun := "\r\n\r\n10000\r\n" + strings.Repeat("x", 1<<16) + "\r\n" // more than the front end waits for
	c, r := dial(chunked + "gather.test" + begun)
	_, streamed := dial(chunked + "stream.test" + begun)
	if status, said := answer(streamed); status != 200 || said != "early" {
		t.Errorf("streamed: %d %s", status, said) // while the body is still open
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the backend was asked %d times before the body had ended", n)
	}
	io.WriteString(c, "0\r\n\r\n")
	if status, said := answer(r); status != 200 || said != "early" || asked.Load() != 1 {
		t.Errorf("gathered: %d %s", status, said)
	}
	for request, want := range map[string]string{
		"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n":                                   " length=5 coding= sum=hello trailer=",
		"Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n":     " length= coding=chunked sum=hello trailer=1",
		"Content-Length: 5\r\n\r\nhello":                                                              " length=5 coding= sum=hello trailer=",
		"Content-Length: 5\r\nExpect: 100-continue\r\n\r\nhello":                                      " length=5 coding= sum=hello trailer=",
		"Content-Length: 3000000\r\n\r\n" + strings.Repeat("long", 750000):                            " length=3000000 coding= sum=longlong trailer=",
		"Transfer-Encoding: chunked\r\n\r\n200000\r\n" + strings.Repeat("x", 2<<20) + "\r\n0\r\n\r\n": " length= coding=chunked sum=xxxxxxxx trailer=",
		"Transfer-Encoding: chunked\r\n\r\n500000\r\n" + strings.Repeat("x", 5<<20) + "\r\n0\r\n\r\n": "413",
		"Transfer-Encoding: chunked\r\n\r\n5\r\nhelloXX0\r\n\r\n":                                     "400",
	} {
		_, r := dial("POST / HTTP/1.1\r\nHost: gather.test\r\n" + request)
		status, said := answer(r)
		if status == 100 {
			status, said = answer(r)
		}
		if status == 200 && said != want || status != 200 && !strings.HasPrefix(said, want) {
			t.Errorf("%.90q: %d %s, want %s", request, status, said, want)
		}
	}
}

// Upgrade is not passed on where the backend is sent another Connection field.
func TestConnectionProxyHeader(t *testing.T) {
	_, p, _ := startFlow(t)
	for host, want := range map[string]string{"connection.test": " length=", "upgrade.test": "tea length="} {
		if status, said := ask(t, bound(p, false), host, "/\nConnection: Upgrade\nUpgrade: tea"); status != 200 || !strings.Contains(said, "\n"+want) {
			t.Errorf("%s: %d %s", host, status, said)
		}
	}
}

// 24 KiB at 16 in a second take half a second after the first 16, and nothing before
// limit-rate begins.
func TestLimitRate(t *testing.T) {
	_, p, _ := startFlow(t)
	for _, k := range []struct {
		key, host   string
		least, most time.Duration
	}{
		{"limit-rate", "rate.test", time.Second / 2, time.Minute},
		{"limit-rate-after", "after.test", 0, 10 * time.Second}, // without it, 24 s
	} {
		t.Run(k.key, func(t *testing.T) {
			began := time.Now()
			status, said := get(t, bound(p, false), k.host, "/large")
			if took := time.Since(began); status != 200 || len(said) != 24<<10 || took < k.least || took > k.most {
				t.Errorf("%d, %d bytes in %v", status, len(said), took)
			}
		})
	}
}

// TestLimitedStreams: limit-rate slows responses down, but neither their heads nor what is
// there already wait for more.
func TestLimitedStreams(t *testing.T) {
	for _, kind := range []string{"", "Content-Length: 8\r\n"} {
		more := make(chan string)
		pod := acceptEach(t, func(c net.Conn) {
			defer c.Close()
			r, err := http.ReadRequest(bufio.NewReader(c))
			if err != nil {
				return
			}
			if r.URL.Path != "/x" {
				io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
				return
			}
			io.WriteString(c, "HTTP/1.1 200 OK\r\n"+kind+"Connection: close\r\n\r\n")
			for piece := range more {
				io.WriteString(c, piece)
			}
		})
		files, p := start(t, func(*proxy.Options) {})
		files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", pod), annotated("rate", "rate.test", map[string]string{"limit-rate": "16"}))
		eventually(t, "the route is there", func() bool { code, _ := get(t, bound(p, false), "rate.test", "/"); return code == 204 })
		c, err := net.Dial("tcp", bound(p, false))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(10 * time.Second))
		io.WriteString(c, "GET /x HTTP/1.1\r\nHost: rate.test\r\n\r\n")
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatalf("%q: no head before the body: %v", kind, err)
		}
		for _, piece := range []string{"one;", "two;"} {
			more <- piece
			got := make([]byte, len(piece))
			if _, err := io.ReadFull(answer.Body, got); err != nil || string(got) != piece {
				t.Errorf("%q: %q, %v before more of the body", kind, got, err)
			}
		}
		close(more)
		if _, err := io.ReadAll(answer.Body); err != nil {
			t.Errorf("%q: %v", kind, err)
		}
	}
}

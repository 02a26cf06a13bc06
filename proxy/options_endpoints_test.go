package proxy_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
	"quayside.io/test/blackhole"
)

// What an option does about endpoints shows only where they are slow, full, ill or new.
// Each is asked for with the option and without it, so that a test passes only where the
// option makes the difference.

// counted is an endpoint that says who it is, and counts what it is asked.
type counted struct {
	addr   string
	asked  atomic.Int64
	checks atomic.Int64 // of /health
}

// pods of Service web, each with a way of its own to answer; nil says who it is.
type pods struct {
	t     *testing.T
	files *cluster.Files
	addr  string // of the proxy
	list  []*counted
}

func startPods(t *testing.T, ways ...http.HandlerFunc) *pods {
	t.Helper()
	files, p := start(t, func(o *proxy.Options) {
		o.Routes.ConfigMap = snapshot.Key{Namespace: "default", Name: "wide"}
	})
	w := &pods{t: t, files: files, addr: bound(p, false)}
	var addrs []string
	for i, way := range ways {
		one := &counted{}
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/health" {
				one.checks.Add(1)
			} else {
				one.asked.Add(1)
			}
			if way != nil {
				way(w, r)
			}
			fmt.Fprintf(w, "pod %d", i)
		}))
		t.Cleanup(s.Close)
		one.addr = strings.TrimPrefix(s.URL, "http://")
		w.list, addrs = append(w.list, one), append(addrs, one.addr)
	}
	files.Put(service("web", corev1.ServicePort{Port: 80}))
	files.Put(podsOf("web", addrs...)...)
	return w
}

// serve gives a host options, and waits until it is served.
func (w *pods) serve(host string, pairs ...string) {
	w.t.Helper()
	options := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		options[pairs[i]] = pairs[i+1]
	}
	w.files.Put(annotated(host, host+".test", options))
	eventually(w.t, host+" is served", func() bool { code, _ := get(w.t, w.addr, host+".test", "/"); return code != 404 })
}

// shares asks n times, and says how often each pod was asked.
func (w *pods) shares(host string, n int) []int64 {
	w.t.Helper()
	for _, p := range w.list {
		p.asked.Store(0)
	}
	for range n {
		if code, text := get(w.t, w.addr, host+".test", "/"); code != 200 {
			w.t.Fatalf("%s: %d %s", host, code, text)
		}
	}
	var out []int64
	for _, p := range w.list {
		out = append(out, p.asked.Load())
	}
	return out
}

func slow(w http.ResponseWriter, r *http.Request) { time.Sleep(30 * time.Millisecond) }

func TestLoadBalance(t *testing.T) {
	w := startPods(t, nil, slow)
	w.serve("plain")
	w.serve("ewma", "load-balance", "ewma")
	if got := w.shares("plain", 40); got[1] < 15 {
		t.Errorf("in turn the slow one is asked %d times of 40", got[1])
	}
	if got := w.shares("ewma", 40); got[1] > 10 {
		t.Errorf("by ewma the slow one is asked %d times of 40", got[1])
	}
	w.files.Put(configMap("wide", "load-balance", "ewma"))
	eventually(t, "the ConfigMap says so for all", func() bool { return w.shares("plain", 40)[1] <= 10 })
}

func TestSlowStart(t *testing.T) {
	w := startPods(t, nil, nil)
	second := podsOf("web", w.list[0].addr, w.list[1].addr)[1]
	w.files.Delete(snapshot.EndpointSlice, snapshot.KeyOf(second))
	w.serve("plain")
	w.serve("slow", "slow-start", "60")
	eventually(t, "one pod is left", func() bool { return w.shares("plain", 10)[1] == 0 })
	w.files.Put(second)
	eventually(t, "the new one has its whole share", func() bool { return w.shares("plain", 10)[1] == 5 })
	eventually(t, "the new one has some share", func() bool { return w.shares("slow", 20)[1] > 0 })
	if got := w.shares("slow", 60); got[1] > 15 {
		t.Errorf("of 60 requests the new one has %d in its first seconds", got[1])
	}
}

func TestEndpointMaxRequests(t *testing.T) {
	release := make(chan struct{})
	w := startPods(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("hold") {
			<-release
		}
	})
	w.serve("full", "endpoint-max-requests", "1")
	w.serve("plain")
	held := make(chan int, 1)
	w.list[0].asked.Store(0)
	go func() { code, _ := get(t, w.addr, "full.test", "/?hold"); held <- code }()
	eventually(t, "one is under way", func() bool { return w.list[0].asked.Load() > 0 })
	if code, text := get(t, w.addr, "full.test", "/"); code != 503 {
		t.Errorf("the second: %d %s", code, text)
	}
	if code, text := get(t, w.addr, "plain.test", "/"); code != 200 {
		t.Errorf("where there is no limit: %d %s", code, text)
	}
	close(release)
	if code := <-held; code != 200 {
		t.Errorf("the first: %d", code)
	}
	eventually(t, "there is room again", func() bool { code, _ := get(t, w.addr, "full.test", "/"); return code == 200 })
}

// isOut reports whether only the first pod is asked.
func (w *pods) isOut(host string) bool { return w.shares(host, 10)[1] == 0 }

// TestHealthChecks has a pod that is well and one that is not, in several ways.
func TestHealthChecks(t *testing.T) {
	ill := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/health" {
			w.WriteHeader(404)
		}
	}
	t.Run("health-check-path", func(t *testing.T) {
		t.Parallel()
		w := startPods(t, nil, ill)
		w.serve("plain")
		w.serve("checked", "health-check-path", "/health", "health-check-interval", "1", "health-check-failures", "1")
		eventually(t, "the ill one is out", func() bool { return w.isOut("checked") })
		if w.isOut("plain") {
			t.Error("it is out without being checked")
		}
	})
	t.Run("health-check-interval", func(t *testing.T) {
		t.Parallel()
		w := startPods(t, nil)
		w.serve("checked", "health-check-path", "/health", "health-check-interval", "1")
		eventually(t, "it is checked", func() bool { return w.list[0].checks.Load() > 0 })
		n, began := w.list[0].checks.Load(), time.Now()
		eventually(t, "it is checked again", func() bool { return w.list[0].checks.Load() > n })
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%v from one check to the next", took)
		}
	})
	t.Run("health-check-failures", func(t *testing.T) {
		t.Parallel()
		w := startPods(t, nil, ill)
		w.serve("checked", "health-check-path", "/health", "health-check-interval", "1", "health-check-failures", "2")
		eventually(t, "it is checked", func() bool { return w.list[1].checks.Load() > 0 })
		for w.list[1].checks.Load() < 2 {
			if w.isOut("checked") && w.list[1].checks.Load() < 2 {
				t.Fatal("one check was enough")
			}
		}
		eventually(t, "two are enough", func() bool { return w.isOut("checked") })
	})
	t.Run("health-check-successes", func(t *testing.T) {
		t.Parallel()
		var well atomic.Bool
		w := startPods(t, nil, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/health" && !well.Load() {
				w.WriteHeader(404)
			}
		})
		w.serve("checked", "health-check-path", "/health", "health-check-interval", "1", "health-check-failures", "1", "health-check-successes", "2")
		eventually(t, "it is out", func() bool { return w.isOut("checked") })
		n := w.list[1].checks.Load()
		well.Store(true)
		eventually(t, "it is back", func() bool { return !w.isOut("checked") })
		if more := w.list[1].checks.Load() - n; more < 2 {
			t.Errorf("%d checks put it back", more)
		}
	})
	t.Run("health-check-timeout", func(t *testing.T) {
		t.Parallel()
		w := startPods(t, nil, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/health" {
				time.Sleep(1500 * time.Millisecond)
			}
		})
		check := []string{"health-check-path", "/health", "health-check-interval", "1", "health-check-failures", "1"}
		w.serve("patient", append(check, "health-check-timeout", "20")...)
		w.serve("short", append(check, "health-check-timeout", "1")...)
		eventually(t, "who waits for a second has it out", func() bool { return w.isOut("short") })
		if w.isOut("patient") {
			t.Error("who waits for longer has it out, too")
		}
	})
}

// deafPod takes connections and reads nothing. Its kernel holds little for it.
func deafPod(t *testing.T) string {
	t.Helper()
	small := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		return errors.Join(c.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) }), err)
	}}
	l, err := small.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String() // the kernel takes them
}

// post sends so many bytes, and goes on when it is answered before all are sent.
func (w *pods) post(host string, size int) (status int, said string) {
	w.t.Helper()
	c, err := net.Dial("tcp", w.addr)
	if err != nil {
		w.t.Fatal(err)
	}
	defer c.Close()
	go func() {
		_, _ = fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n", host, size)
		_, _ = io.Copy(c, strings.NewReader(strings.Repeat("x", size)))
	}()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// TestTimesOfAnEndpoint: who waits for a second is done long before who waits for what
// is the default, which nobody here does.
func TestTimesOfAnEndpoint(t *testing.T) {
	type timed struct {
		key, pod, says string
		size           int           // of what is sent
		most           time.Duration // less than the default
	}
	for _, k := range []timed{
		{"proxy-connect-timeout", blackhole.Address(t), "did not accept a connection in time", 0, 4 * time.Second},
		{"proxy-send-timeout", deafPod(t), "did not read the request in time", 64 << 20, 20 * time.Second},
	} {
		t.Run(k.key, func(t *testing.T) {
			t.Parallel()
			for _, wide := range []bool{false, true} {
				w := startPods(t)
				w.files.Put(podsOf("web", k.pod)...)
				options := map[string]string{"proxy-body-size": "0", "proxy-next-upstream": "off"}
				if wide {
					w.files.Put(configMap("wide", k.key, "1"))
				} else {
					options[k.key] = "1"
				}
				w.files.Put(annotated("timed", "timed.test", options), ingress("last", "last.test", "/", "nowhere", number))
				eventually(t, "the routes are served", func() bool { code, _ := get(t, w.addr, "last.test", "/"); return code == 503 })
				began := time.Now()
				status, said := w.post("timed.test", k.size)
				if took := time.Since(began); status != 504 || !strings.Contains(said, k.says) || took > k.most {
					t.Errorf("by the ConfigMap %v: %d %.200q after %v", wide, status, said, took)
				}
			}
		})
	}
}

// A head of 200 KiB passes whatever the option says, since so much always does, and one
// of 300 KiB does not.
func TestProxyBufferSize(t *testing.T) {
	w := startPods(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			for range strings.Count(r.URL.Path, "k") {
				w.Header().Add("X-Long", strings.Repeat("x", 1000))
			}
		}
	})
	w.serve("small", "proxy-buffer-size", "4k")
	for n, want := range map[int]int{40: 200, 200: 200, 300: 502} {
		if code, text := get(t, w.addr, "small.test", "/"+strings.Repeat("k", n)); code != want {
			t.Errorf("a head of %d kB: %d %.100s, want %d", n, code, text, want)
		}
	}
}

// A POST whose endpoint hangs up is lost, unless who runs the proxy says that it may be
// sent to another one.
func TestRetryNonIdempotent(t *testing.T) {
	hangUp := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Method == http.MethodPost {
			panic(http.ErrAbortHandler)
		}
	}
	t.Run("retry-non-idempotent", func(t *testing.T) {
		w := startPods(t, nil, hangUp)
		w.serve("plain")
		eventually(t, "one is lost", func() bool { status, _ := ask(t, w.addr, "plain.test", "POST /\n\nbody"); return status == 502 })
		w = startPods(t, nil, hangUp)
		w.files.Put(configMap("wide", "retry-non-idempotent", "true"))
		w.serve("again")
		w.list[1].asked.Store(0)
		for range 4 {
			if status, said := ask(t, w.addr, "again.test", "POST /\n\nbody"); status != 200 {
				t.Errorf("%d %s", status, said)
			}
		}
		if w.list[1].asked.Load() == 0 {
			t.Error("the one that hangs up was never asked: nothing is tested")
		}
	})
}

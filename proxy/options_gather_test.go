package proxy_test

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster"
	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
)

// gathering is a proxy with files for bodies, 1 MiB of them, so that a body of more
// than 256 KiB is streamed.
type gathering struct {
	t        *testing.T
	addr     string
	dir      string
	registry *prometheus.Registry
	asked    atomic.Int64
	files    *cluster.Files
}

func startGathering(t *testing.T) *gathering {
	g := &gathering{t: t, dir: t.TempDir(), registry: prometheus.NewRegistry()}
	files, p := start(t, func(o *proxy.Options) {
		o.BodyFiles = proxy.BodyFiles{Dir: g.dir, Size: 1 << 20}
		o.Registerer = g.registry
		o.Routes.ConfigMap = snapshot.Key{Namespace: "default", Name: "wide"}
		o.Routes.Classes.Adopt = []string{ingressclass.NginxController}
	})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" {
			g.asked.Add(1)
		}
		sum := sha256.New()
		if _, err := io.Copy(sum, r.Body); err == nil {
			fmt.Fprintf(w, "length=%s coding=%s sum=%x", r.Header.Get("Content-Length"), strings.Join(r.TransferEncoding, ","), sum.Sum(nil))
		}
	}))
	t.Cleanup(web.Close)
	adopted := annotated("adopted", "adopted.test", map[string]string{"proxy-body-size": "0"})
	off := annotated("off", "off.test", map[string]string{"proxy-request-buffering": "off"})
	bad := annotated("bad", "bad.test", map[string]string{"proxy-request-buffering": "off;"})
	class := ingressclass.NginxName
	adopted.Spec.IngressClassName, off.Spec.IngressClassName, bad.Spec.IngressClassName = &class, &class, &class
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", strings.TrimPrefix(web.URL, "http://")), adopted, off, bad,
		annotated("on", "on.test", map[string]string{"proxy-request-buffering": "on"}),
		annotated("memory", "memory.test", map[string]string{"proxy-request-buffering": "on", "client-body-buffer-size": "256k"}),
		annotated("own", "own.test", nil))
	g.files, g.addr = files, bound(p, false)
	eventually(t, "the routes are served", func() bool {
		code, _ := get(t, g.addr, "adopted.test", "/")
		other, _ := get(t, g.addr, "own.test", "/")
		return code == 200 && other == 200
	})
	return g
}

// upload is a request whose body is on its way.
type upload struct {
	g    *gathering
	conn net.Conn
	in   *bufio.Reader
}

// begin sends a head, which says chunked, and the first n bytes of a body.
func (g *gathering) begin(host string, n int) *upload {
	g.t.Helper()
	c, err := net.Dial("tcp", g.addr)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { c.Close() })
	u := &upload{g, c, bufio.NewReader(c)}
	fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: %s\r\nTransfer-Encoding: chunked\r\n\r\n", host)
	u.more(n)
	return u
}

func (u *upload) more(n int) { fmt.Fprintf(u.conn, "%x\r\n%s\r\n", n, pattern(n)) }

// end sends the end of the body.
func (u *upload) end() (int, string) {
	io.WriteString(u.conn, "0\r\n\r\n")
	return u.answer()
}

func (u *upload) answer() (int, string) {
	u.g.t.Helper()
	resp, err := http.ReadResponse(u.in, nil)
	if err != nil {
		u.g.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		u.g.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// pattern is n bytes that show where they belong.
func pattern(n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(strconv.Itoa(b.Len()) + " ")
	}
	return b.String()[:n]
}

// metric is the value of a gauge or counter without labels.
func (g *gathering) metric(name string) float64 {
	g.t.Helper()
	families, err := g.registry.Gather()
	if err != nil {
		g.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			m := f.GetMetric()[0]
			return m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	g.t.Fatalf("there is no metric %s", name)
	return 0
}

const gatheredBody = 250_000 // longer than memory, shorter than what is streamed

// A body that is too long for memory waits in a file that has no name, and the
// backend is asked once it is whole, with its length.
func TestBodiesGoToFiles(t *testing.T) {
	g := startGathering(t)
	want := fmt.Sprintf("length=%d coding= sum=%x", gatheredBody, sha256.Sum256([]byte(pattern(gatheredBody))))
	for _, host := range []string{"on.test", "adopted.test", "bad.test"} { // in adopted classes it is the default
		u := g.begin(host, gatheredBody)
		eventually(t, "the body is in a file", func() bool {
			return g.metric("quayside_http_body_files") == 1 && g.metric("quayside_http_body_file_bytes") >= gatheredBody-32<<10
		})
		if names, err := os.ReadDir(g.dir); err != nil || len(names) > 0 {
			t.Errorf("%s: the file has a name: %v %v", host, names, err)
		}
		if n := g.asked.Load(); n != 0 {
			t.Errorf("%s: the backend was asked before the body had ended", host)
		}
		if status, said := u.end(); status != 200 || said != want {
			t.Errorf("%s: %d %s, want %s", host, status, said, want)
		}
		eventually(t, "the file is gone", func() bool {
			return g.metric("quayside_http_body_files") == 0 && g.metric("quayside_http_body_file_bytes") == 0
		})
		g.asked.Store(0)
	}
	t.Run("client-body-buffer-size", func(t *testing.T) {
		written := g.metric("quayside_http_body_file_written_bytes_total")
		if status, said := g.begin("memory.test", gatheredBody).end(); status != 200 || said != want {
			t.Errorf("in memory: %d %s", status, said)
		}
		if now := g.metric("quayside_http_body_file_written_bytes_total"); now != written {
			t.Errorf("client-body-buffer-size is 256k, and %v bytes went to a file", now-written)
		}
		g.files.Put(configMap("wide", "client-body-buffer-size", "256k"))
		eventually(t, "the ConfigMap says so for all", func() bool {
			written := g.metric("quayside_http_body_file_written_bytes_total")
			status, said := g.begin("adopted.test", gatheredBody).end()
			return status == 200 && said == want && g.metric("quayside_http_body_file_written_bytes_total") == written
		})
	})
}

// What is not gathered is streamed: the backend is asked while the body comes.
func TestBodiesThatAreStreamed(t *testing.T) {
	g := startGathering(t)
	for host, n := range map[string]int{"off.test": gatheredBody, "own.test": gatheredBody, "on.test": 300_000, "adopted.test": 300_000} {
		g.asked.Store(0)
		u := g.begin(host, n)
		eventually(t, host+": the backend is asked before the body ends", func() bool { return g.asked.Load() == 1 })
		want := fmt.Sprintf("length= coding=chunked sum=%x", sha256.Sum256([]byte(pattern(n))))
		if status, said := u.end(); status != 200 || said != want {
			t.Errorf("%s: %d %s, want %s", host, status, said, want)
		}
	}
	// Who says so beforehand is not even begun to be gathered.
	c, err := net.Dial("tcp", g.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	g.asked.Store(0)
	fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: adopted.test\r\nContent-Length: 10000000\r\n\r\n%s", pattern(20_000))
	eventually(t, "the backend is asked as soon as there is a length", func() bool { return g.asked.Load() == 1 })
}

// When all files are full, who needs one more is told so at once, and others are
// served. A file that ends makes room.
func TestNoRoomForBodies(t *testing.T) {
	g := startGathering(t)
	var waiting []*upload
	for range 4 {
		waiting = append(waiting, g.begin("on.test", gatheredBody))
	}
	eventually(t, "four bodies hold everything", func() bool { return g.metric("quayside_http_body_file_bytes") == 1<<20 })
	if status, said := g.begin("on.test", gatheredBody).answer(); status != 503 || !strings.Contains(said, "no room") {
		t.Errorf("a fifth: %d %s", status, said)
	}
	for host, n := range map[string]int{"on.test": 1000, "memory.test": gatheredBody, "off.test": gatheredBody} {
		if status, said := g.begin(host, n).end(); status != 200 {
			t.Errorf("%s with %d bytes: %d %s", host, n, status, said)
		}
	}
	waiting[0].conn.Close()
	eventually(t, "who hangs up makes room", func() bool { return g.metric("quayside_http_body_file_bytes") < 1<<20 })
	if status, said := g.begin("on.test", gatheredBody).end(); status != 200 {
		t.Errorf("when there is room: %d %s", status, said)
	}
	for _, u := range waiting[1:] {
		if status, said := u.end(); status != 200 {
			t.Errorf("one that had room: %d %s", status, said)
		}
	}
}

// A disk that fails costs the requests that need it, and says so.
func TestNoStorageForBodies(t *testing.T) {
	g := startGathering(t)
	if err := os.RemoveAll(g.dir); err != nil {
		t.Fatal(err)
	}
	if status, said := g.begin("on.test", gatheredBody).answer(); status != 507 || !strings.Contains(said, "could not be stored") {
		t.Errorf("without a folder: %d %s", status, said)
	}
	if status, said := g.begin("on.test", 1000).end(); status != 200 {
		t.Errorf("a small one: %d %s", status, said)
	}
}

// podsOf are endpoints of a Service, each with a port of its own.
func podsOf(service string, addrs ...string) (list []snapshot.Object) {
	for i, addr := range addrs {
		s := slice(service, "", addr)
		s.Name = fmt.Sprint(service, "-", i)
		list = append(list, s)
	}
	return list
}

// A body that was gathered goes to a second endpoint, whole, where the method or the
// option allows that.
func TestGatheredBodiesAreSentAgain(t *testing.T) {
	files, p := start(t, func(o *proxy.Options) { o.BodyFiles = proxy.BodyFiles{Dir: t.TempDir(), Size: 1 << 20} })
	sum := func(refuse bool) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			sum := sha256.New()
			if !refuse || r.Header.Get("X-Read") != "" {
				io.Copy(sum, r.Body)
			}
			if refuse {
				w.WriteHeader(503)
			}
			fmt.Fprintf(w, "%x", sum.Sum(nil))
		}))
		t.Cleanup(s.Close)
		return strings.TrimPrefix(s.URL, "http://")
	}
	const next = "error http_503"
	files.Put(podsOf("web", sum(true), sum(false))...)
	files.Put(service("web", corev1.ServicePort{Port: 80}),
		annotated("on", "on.test", map[string]string{"proxy-request-buffering": "on", "proxy-next-upstream": next}),
		annotated("all", "all.test", map[string]string{"proxy-request-buffering": "on", "proxy-next-upstream": next + " non_idempotent"}),
		annotated("off", "off.test", map[string]string{"proxy-next-upstream": next + " non_idempotent"}))
	addr := bound(p, false)
	eventually(t, "the routes are served", func() bool { code, _ := get(t, addr, "off.test", "/"); return code == 200 })
	body := pattern(gatheredBody)
	want := fmt.Sprintf("%x", sha256.Sum256([]byte(body)))
	for _, c := range []struct {
		host, method, field string
		worst               int
	}{
		{"on.test", "PUT", "X-Read: all", 200},
		{"on.test", "PUT", "X-Other: none", 200}, // the one before did not read it
		{"on.test", "POST", "X-Read: all", 503},
		{"all.test", "POST", "X-Read: all", 200},
		{"off.test", "PUT", "X-Read: all", 503},
	} {
		worst := 0
		for range 4 { // half of them begin at each endpoint
			status, said := ask(t, addr, c.host, c.method+" /\n"+c.field+"\n\n"+body)
			worst = max(worst, status)
			if status == 200 && !strings.HasSuffix(said, want) {
				t.Errorf("%s %s: the body is another: %s", c.method, c.host, said)
			}
		}
		if worst != c.worst {
			t.Errorf("%s %s with %s: %d, want %d", c.method, c.host, c.field, worst, c.worst)
		}
	}
}

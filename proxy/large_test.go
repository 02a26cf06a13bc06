package proxy_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
)

const (
	// largeVariable makes this test be the proxy before the pods of the address in it.
	largeVariable = "QUAYSIDE_TEST_LARGE"
	// largeLimit is how much of it may be resident.
	largeLimit = 64 << 20
)

// largeSize is how much goes up and down: 4 GiB as a soak test.
func largeSize() int64 {
	if os.Getenv("QUAYSIDE_SOAK") != "" {
		return 4 << 30
	}
	return 128 << 20
}

// stripes is a body of so many bytes whose parts differ.
type stripes struct {
	pattern  []byte // of a length that is no multiple of anything
	at, left int64
}

func newStripes(size int64) *stripes {
	s := &stripes{pattern: make([]byte, 65521), left: size}
	for i := range s.pattern {
		s.pattern[i] = byte(i * 7 >> 3)
	}
	return s
}

func (s *stripes) Read(b []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	from := s.pattern[s.at%int64(len(s.pattern)):]
	n := copy(b[:min(int64(len(b)), s.left)], from)
	s.at += int64(n)
	s.left -= int64(n)
	return n, nil
}

// Write compares what is written with what should be.
func (s *stripes) Write(b []byte) (int, error) {
	for at := 0; at < len(b); {
		from := s.pattern[s.at%int64(len(s.pattern)):]
		n := int(min(int64(len(b)-at), int64(len(from)), s.left))
		if n == 0 || !bytes.Equal(b[at:at+n], from[:n]) {
			return at, fmt.Errorf("byte %d or one after it is another", s.at)
		}
		s.at += int64(n)
		s.left -= int64(n)
		at += n
	}
	return len(b), nil
}

// check reads a body to its end.
func (s *stripes) check(body io.Reader) error {
	if _, err := io.Copy(s, body); err != nil {
		return err
	}
	if s.left != 0 {
		return fmt.Errorf("%d bytes are missing", s.left)
	}
	return nil
}

// storePod is a pod that takes and gives large bodies.
func storePod(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		io.Copy(w, newStripes(largeSize()))
	} else if err := newStripes(largeSize()).check(r.Body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

// An upload and a download of 4 GiB (see largeSize) pass over HTTP/1.1 and HTTP/2
// through a proxy that never holds more than a little of them.
func TestLargeBodiesAllocateLittle(t *testing.T) {
	if racing {
		t.Skip("the race detector takes memory of its own")
	}
	if addrs := os.Getenv(largeVariable); addrs != "" {
		beProxyForLarge(t, strings.Fields(addrs))
		return
	}
	var addrs []string
	for _, http2 := range []bool{false, true} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(storePod))
		s.Config.Protocols = new(http.Protocols)
		s.Config.Protocols.SetHTTP1(!http2)
		s.Config.Protocols.SetUnencryptedHTTP2(http2)
		s.Start()
		defer s.Close()
		addrs = append(addrs, s.Listener.Addr().String())
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestLargeBodiesAllocateLittle$")
	cmd.Env = append(os.Environ(), largeVariable+"="+strings.Join(addrs, " "), "GORACE=atexit_sleep_ms=0")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}()
	lines := bufio.NewScanner(out)
	addr := ""
	for addr == "" && lines.Scan() {
		addr, _ = strings.CutPrefix(lines.Text(), "serving on ")
		if _, _, err := net.SplitHostPort(addr); err != nil {
			addr = ""
		}
	}
	if addr == "" {
		t.Fatalf("the proxy did not start: %v", lines.Err())
	}
	go func() {
		for lines.Scan() {
			t.Log(lines.Text())
		}
	}()
	before := residentPeak(t, cmd.Process.Pid)
	for _, by := range []struct {
		name string
		rt   *http.Transport
		host string
	}{{"HTTP1", &http.Transport{}, "one.example"}, {"HTTP2", unencryptedHTTP2(t), "two.example"}} {
		t.Run(by.name, func(t *testing.T) {
			defer by.rt.CloseIdleConnections()
			for _, method := range []string{"GET", "PUT", "POST"} { // down, up with a length and without
				carryLarge(t, by.rt, method, addr, by.host)
			}
		})
	}
	peak := residentPeak(t, cmd.Process.Pid)
	t.Logf("%d MiB each way: at most %d MiB resident, %d before", largeSize()>>20, peak>>20, before>>20)
	if peak > largeLimit {
		t.Errorf("%d MiB were resident, want at most %d", peak>>20, largeLimit>>20)
	}
}

// carryLarge sends a large body, or fetches one, and looks at it.
func carryLarge(t *testing.T, rt *http.Transport, method, addr, host string) {
	t.Helper()
	var body io.Reader
	if method != "GET" {
		body = newStripes(largeSize())
	}
	req, err := http.NewRequest(method, "http://"+addr+"/", body)
	if err != nil {
		t.Fatal(err)
	}
	if req.Host = host; method == "PUT" {
		req.ContentLength = largeSize()
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	if method == "GET" {
		err = newStripes(largeSize()).check(resp.Body)
	}
	text, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode != 200 {
		t.Errorf("%s: %d %s, %v", method, resp.StatusCode, text, err)
	}
}

// beProxyForLarge serves until its input ends.
func beProxyForLarge(t *testing.T, pods []string) {
	files, p := start(t, func(o *proxy.Options) { o.HTTP2, o.H2C = true, true })
	var objects []snapshot.Object
	for i, name := range []string{"one", "two"} {
		ing := ingress(name, name+".example", "/", name, number)
		ing.Annotations = map[string]string{"ingress.quayside.io/proxy-body-size": "0"}
		if name == "two" {
			ing.Annotations["ingress.quayside.io/backend-protocol"] = "H2C"
		}
		objects = append(objects, service(name, corev1.ServicePort{Port: 80}), slice(name, "", pods[i]), ing)
	}
	files.Put(objects...)
	eventually(t, "the routes are served", func() bool { st, _ := p.State().(proxy.State); return len(st.Routes) == 2 })
	fmt.Println("serving on " + bound(p, false))
	io.Copy(io.Discard, os.Stdin)
}

// residentPeak is the most that a process has had in memory, in bytes.
func residentPeak(t *testing.T, pid int) int64 {
	t.Helper()
	return statusField(t, pid, "VmHWM:")
}

// statusField is what the kernel says of a process, in bytes.
func statusField(t *testing.T, pid int, name string) int64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			kB, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kB << 10
		}
	}
	t.Fatalf("no %s", name)
	return 0
}

package bench

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkManyIngresses starts `quayside up` over manifests of 10,000 and of 100,000
// Ingresses, each of three paths, which lead to one Service or to one each with an
// endpoint of its own. It reports how long it takes until the first and the last of them
// are served and what processor time that took, what is resident when all are, what a
// while later, when the memory of the start has been given back, and after the changes,
// and how long a file with one changed Ingress takes to be served.
func BenchmarkManyIngresses(b *testing.B) {
	binary := buildBinary(b)
	pod := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Host) }))
	defer pod.Close()
	for _, shared := range []bool{true, false} {
		for _, n := range []int{0, 10_000, 100_000} {
			s := manyShops{n: n, shared: shared, pod: pod.Listener.Addr()}
			b.Run(fmt.Sprintf("%s/%d", map[bool]string{true: "one-service", false: "a-service-each"}[shared], n), func(b *testing.B) {
				dir := b.TempDir()
				s.write(b, dir)
				for b.Loop() {
					s.start(b, binary, dir)
				}
			})
		}
	}
}

// manyShops are n Ingresses of three paths, and the one that changes.
type manyShops struct {
	n      int
	shared bool // their Service is one
	pod    net.Addr
}

// changesOfMany is how often one of many is changed: the fewest that have a p99.
const changesOfMany = 100

// settled is when a process has given back the memory of its start.
const settled = 10 * time.Second

func (s manyShops) start(b *testing.B, binary, dir string) {
	b.Helper()
	u := startUp(b, binary, "-f", dir)
	defer u.stop()
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
	defer cancel()
	for _, i := range []int{0, s.n} { // the last is the one that changes later
		if !u.await(ctx, fmt.Sprintf("shop-%d.example.com", i), "/") {
			b.Fatalf("shop-%d is not served: %s", i, u.said())
		}
		b.ReportMetric(time.Since(u.began).Seconds(), map[bool]string{true: "s/last-served", false: "s/first-served"}[i == s.n])
	}
	b.ReportMetric(u.processorTime(b).Seconds(), "s/processor")
	b.ReportMetric(u.status(b, "VmRSS:"), "MB/when-served")
	time.Sleep(settled)
	b.ReportMetric(u.status(b, "VmRSS:"), "MB/settled")
	b.ReportMetric(u.status(b, "VmHWM:"), "MB/most-resident")
	var took []time.Duration
	for k := range changesOfMany {
		path := fmt.Sprintf("/changed-%d", k)
		text := s.text(s.n, path)
		begin := time.Now()
		replace(b, filepath.Join(dir, changing), text)
		if !u.await(ctx, fmt.Sprintf("shop-%d.example.com", s.n), path) {
			b.Fatalf("change %d is not served: %s", k, u.said())
		}
		took = append(took, time.Since(begin))
	}
	b.ReportMetric(u.status(b, "VmRSS:"), "MB/changed")
	slices.Sort(took)
	for _, at := range []int{50, 99, 100} {
		b.ReportMetric(took[(len(took)-1)*at/100].Seconds()*1000, fmt.Sprintf("ms/change-p%d", at))
	}
}

// changing is the file with the Ingress that changes. It comes last.
const changing = "z.yaml"

// write writes them, a thousand in each file.
func (s manyShops) write(b *testing.B, dir string) {
	b.Helper()
	const perFile = 1000
	for first := 0; first < s.n; first += perFile {
		var text strings.Builder
		for i := first; i < min(s.n, first+perFile); i++ {
			text.WriteString(s.text(i, "/"))
		}
		replace(b, filepath.Join(dir, fmt.Sprintf("shops-%06d.yaml", first)), text.String())
	}
	replace(b, filepath.Join(dir, changing), s.text(s.n, "/"))
}

// replace writes a file as editors do, so that nobody reads half of it.
func replace(b *testing.B, file, text string) {
	b.Helper()
	part := filepath.Join(filepath.Dir(file), "part")
	if err := os.WriteFile(part, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	if err := os.Rename(part, file); err != nil {
		b.Fatal(err)
	}
}

// text is a host with three paths, the first of them given, and what stands behind. The
// one that changes has a Service of its own.
func (s manyShops) text(i int, first string) string {
	addr, port, _ := net.SplitHostPort(s.pod.String())
	service := i
	if s.shared && i < s.n {
		service = 0
	}
	text := fmt.Sprintf(`apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {namespace: shops, name: shop-%[1]d}
spec:
  ingressClassName: quayside
  rules:
  - host: shop-%[1]d.example.com
    http:
      paths:
`, i)
	for _, path := range []string{first, "/api/v1", "/static"} {
		text += fmt.Sprintf("      - {path: %s, pathType: Exact, backend: {service: {name: shop-%d, port: {number: 80}}}}\n", path, service)
	}
	if service != i {
		return text + "---\n"
	}
	return text + fmt.Sprintf(`---
apiVersion: v1
kind: Service
metadata: {namespace: shops, name: shop-%[1]d}
spec: {ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: shops, name: shop-%[1]d, labels: {kubernetes.io/service-name: shop-%[1]d}}
addressType: IPv4
ports: [{name: "", port: %[3]s}]
endpoints: [{addresses: ["%[2]s"]}]
---
`, i, addr, port)
}

// up is a `quayside up` that runs.
type up struct {
	cmd   *exec.Cmd
	began time.Time
	at    string // where it serves HTTP
	log   string // its file
}

func startUp(b *testing.B, binary string, args ...string) *up {
	b.Helper()
	u := &up{at: free(b), log: filepath.Join(b.TempDir(), "log")}
	out, err := os.Create(u.log)
	if err != nil {
		b.Fatal(err)
	}
	defer out.Close()
	u.cmd = exec.Command(binary, append([]string{"up", "--http", u.at, "--https", free(b), "--admin", free(b)}, args...)...)
	u.cmd.Stderr = out
	u.began = time.Now()
	if err := u.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	return u
}

func (u *up) stop() {
	_ = u.cmd.Process.Signal(syscall.SIGTERM)
	_ = u.cmd.Wait() // it was told to end
}

// said is the end of its log.
func (u *up) said() string {
	text, _ := os.ReadFile(u.log)
	return string(text[max(0, len(text)-2000):])
}

// await asks every millisecond until a host answers 200 at a path.
func (u *up) await(ctx context.Context, host, path string) bool {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second}
	for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+u.at+path, nil)
		if err != nil {
			return false
		}
		req.Host = host
		resp, err := client.Do(req)
		if err != nil {
			continue
		}
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return true
		}
	}
	return false
}

// processorTime is what the process has had so far, in user and in system mode.
func (u *up) processorTime(b *testing.B) time.Duration {
	b.Helper()
	var spent unix.Timespec
	if err := unix.ClockGettime(int32(^u.cmd.Process.Pid<<3|2), &spent); err != nil { // clock_getcpuclockid(3)
		b.Fatal(err)
	}
	return time.Duration(spent.Nano())
}

// status is a field of the process's status in MB, of those that are in kB there.
func (u *up) status(b *testing.B, field string) float64 {
	b.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", u.cmd.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), field); ok {
			var kB float64
			if _, err := fmt.Sscan(rest, &kB); err != nil {
				b.Fatal(err)
			}
			return kB * 1024 / 1e6
		}
	}
	b.Fatalf("the kernel does not tell %s", field)
	return 0
}

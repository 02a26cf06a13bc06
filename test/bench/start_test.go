package bench

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// BenchmarkUpDemoServes measures the first impression: from the start of
// `quayside up --demo` until an Ingress answers 200 at the address that was
// allocated, and the size of the stripped binary. The bars are 1 s and 60 MB.
func BenchmarkUpDemoServes(b *testing.B) {
	binary := buildBinary(b)
	info, err := os.Stat(binary)
	if err != nil {
		b.Fatal(err)
	}
	var total, worst time.Duration
	runs := 0
	for b.Loop() {
		took := firstAnswer(b, binary)
		total, worst, runs = total+took, max(worst, took), runs+1
	}
	b.ReportMetric(float64(total.Milliseconds())/float64(runs), "ms/first-answer")
	b.ReportMetric(float64(worst.Milliseconds()), "ms/worst")
	b.ReportMetric(float64(info.Size())/1e6, "MB/binary")
}

// buildBinary builds what is released.
func buildBinary(b *testing.B) string {
	b.Helper()
	binary := filepath.Join(b.TempDir(), "quayside")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", binary, "quayside.io")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
	return binary
}

func firstAnswer(b *testing.B, binary string) time.Duration {
	b.Helper()
	http1, https1, admin := free(b), free(b), free(b)
	ctx, cancel := context.WithTimeout(b.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "up", "--demo", "--http", http1, "--https", https1, "--admin", admin)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	var out strings.Builder
	cmd.Stderr = &out
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(http1)
	took := awaitVideo(ctx, "127.0.10.0:"+port, begin)
	cancel()
	_ = cmd.Wait() // it was told to end
	if took == 0 {
		b.Fatalf("no answer in 20 s: %s", out.String())
	}
	return took
}

// awaitVideo asks the demo's proxy every millisecond until it answers 200.
func awaitVideo(ctx context.Context, at string, begin time.Time) time.Duration {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second}
	for ctx.Err() == nil {
		resp, err := client.Get("http://" + at + "/video")
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return time.Since(begin)
			}
		}
		time.Sleep(time.Millisecond)
	}
	return 0
}

func free(b *testing.B) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

//go:build !portable

package upstream

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"testing"
	"time"

	"quayside.io/proxy/balance"
	"quayside.io/proxy/exchange"
)

// That we have no descriptor left for a connection says nothing about the pod: it stays in
// turn, also for its health checks.
func TestOurShortageIsNotThePods(t *testing.T) {
	b := backendOver(t, balance.Policy{}, slowTLS(t, func() {}), slowTLS(t, func() {}))
	now := b.state.Load()
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	defer syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	check := balance.HealthCheck{Path: "/", Interval: time.Millisecond, Timeout: 20 * time.Second, Failures: 1, Successes: 1}
	b.of.Policy.HealthCheck = check
	for at, e := range now.endpoints {
		health := now.set.Endpoints[at].Health
		for range 5 { // three failures in a row eject
			r := &race{backend: b, timeout: 20 * time.Second, targets: now, tried: []int{0, 1}}
			r.ended.L = &r.mu
			if _, c, err := r.run(at); !errors.Is(err, syscall.EMFILE) {
				t.Fatalf("without a descriptor: %v, %v", c, err)
			}
		}
		if health.Ejected() {
			t.Errorf("endpoint %d is out of turn, since we have no descriptor", at)
		}
		ex := &exchange.Exchange{}
		ex.Request.Method, ex.Request.Target, ex.Request.Host = []byte("GET"), []byte("/"), []byte("web")
		if b.Forward(ex); ex.Response.Status != 503 || e.failed.Load() > 0 || b.stats.retries.Load() > 0 {
			t.Errorf("without a descriptor a request gets %d %s, %d failures of the pod are told, %d retries", ex.Response.Status, ex.Response.Text, e.failed.Load(), b.stats.retries.Load())
		}
		ctx, stop := context.WithCancel(t.Context())
		var watching sync.WaitGroup
		watching.Go(func() { b.watch(ctx, e, health) })
		for before := b.stats.dials.Load(); b.stats.dials.Load() < before+3; {
			time.Sleep(time.Millisecond)
		}
		stop()
		watching.Wait()
		if health.Checked(true, check) {
			t.Errorf("endpoint %d fails its checks, since we have no descriptor", at)
		}
	}
}

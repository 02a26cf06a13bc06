package demo

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// A watcher sends requests without pause and counts those that were not
// answered with 200.
type watcher struct {
	proxy    func() (netip.AddrPort, bool)
	requests atomic.Int64
	failed   atomic.Int64
	lastErr  atomic.Pointer[string]
}

const (
	watchers      = 4                     // connections that send
	watchInterval = 20 * time.Millisecond // of each
)

func (w *watcher) run(ctx context.Context) error {
	at, err := w.waitForProxy(ctx)
	if err != nil {
		return nil // the demo ended first
	}
	transport := &http.Transport{MaxIdleConnsPerHost: watchers}
	defer transport.CloseIdleConnections()
	var group sync.WaitGroup
	for range watchers {
		group.Go(func() { w.send(ctx, &http.Client{Transport: transport, Timeout: 5 * time.Second}, at) })
	}
	group.Wait()
	return nil
}

func (w *watcher) waitForProxy(ctx context.Context) (netip.AddrPort, error) {
	for {
		if at, ok := w.proxy(); ok {
			return at, nil
		}
		sleep(ctx, 10*time.Millisecond)
		if ctx.Err() != nil {
			return netip.AddrPort{}, ctx.Err()
		}
	}
}

func (w *watcher) send(ctx context.Context, c *http.Client, at netip.AddrPort) {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			err := get(ctx, c, at)
			if ctx.Err() != nil {
				return // stopping is not a lost request
			}
			w.requests.Add(1)
			if err != nil {
				w.failed.Add(1)
				text := err.Error()
				w.lastErr.Store(&text)
			}
		}
	}
}

func get(ctx context.Context, c *http.Client, at netip.AddrPort) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at.String()+"/", nil)
	if err != nil {
		return err
	}
	req.Host = "video.example.com"
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	return err
}

func (w *watcher) stats() Stats {
	s := Stats{Requests: w.requests.Load(), Failed: w.failed.Load()}
	if text := w.lastErr.Load(); text != nil {
		s.LastErr = *text
	}
	return s
}

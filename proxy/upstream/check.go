package upstream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"quayside.io/proxy/balance"
	"quayside.io/proxy/exchange"
)

// watchOver starts the health checks of e, whose results h gets, if the backend's policy
// has any. It needs the backend's lock.
func (b *Backend) watchOver(e *endpoint, h *balance.Health) {
	if b.of.Policy.HealthCheck.Path == "" || b.retired || e.watched == h {
		return
	}
	e.unwatch()
	ctx, cancel := context.WithCancel(context.Background())
	if b.engine.background(func() { b.watch(ctx, e, h) }) {
		e.watched, e.cancel = h, cancel
	} else {
		cancel()
	}
}

// unwatch ends what watchOver began.
func (e *endpoint) unwatch() {
	if e.watched != nil {
		e.cancel()
		e.watched, e.cancel = nil, nil
	}
}

// background runs f beside the engine, unless that has ended; Run waits for it.
func (e *Engine) background(f func()) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.ended {
		e.watching.Go(f)
	}
	return !e.ended
}

// watch asks e for as long as ctx lasts.
func (b *Backend) watch(ctx context.Context, e *endpoint, h *balance.Health) {
	c := b.of.Policy.HealthCheck
	next := time.NewTimer(rand.N(c.Interval)) // not all endpoints at once, nor by all proxies
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		err := e.check(ctx, c)
		if ctx.Err() != nil {
			return
		}
		if isOurs(err) {
			next.Reset(c.Interval)
			continue
		}
		switch changed := h.Checked(err == nil, c); {
		case changed && err != nil:
			b.engine.options.Log.Warn("an endpoint fails its health checks and is left out", "backend", b.name, "endpoint", e.text, "path", c.Path, "why", err)
		case changed:
			b.engine.options.Log.Info("an endpoint passes its health checks again", "backend", b.name, "endpoint", e.text, "path", c.Path)
		}
		next.Reset(c.Interval)
	}
}

// check asks e once, over a connection of its own: one that is kept says nothing about
// who is not connected.
func (e *endpoint) check(ctx context.Context, c balance.HealthCheck) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	nc, err := e.dial(ctx, c.Timeout)
	if err != nil {
		return err
	}
	defer e.discard(nc)
	defer context.AfterFunc(ctx, func() { nc.Close() })() // ends all waiting
	ask := nc.checkHead
	if e.backend.of.HTTP2 {
		ask = nc.checkStream
	}
	status, err := ask(ctx, c.Path)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("there is no answer in time: %w", context.Cause(ctx))
	case err != nil:
		return err
	case status >= 400:
		return fmt.Errorf("the answer is %d", status)
	}
	return nil
}

// checker names us to pods.
const checker = "quayside-health-check"

// checkHead asks over HTTP/1.1 and returns the status.
func (c *conn) checkHead(_ context.Context, path string) (int, error) {
	b := fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\nConnection: close\r\n\r\n", path, c.endpoint.text, checker)
	if _, err := c.Write(b); err != nil {
		return 0, err
	}
	b = b[:0]
	for {
		if len(b) == cap(b) {
			b = slices.Grow(b, max(len(b), 512))
		}
		n, err := c.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		for {
			hd, size, bad := parseHead(b, new(exchange.Header))
			if bad == errIncomplete {
				break
			}
			if bad != nil || hd.status >= 200 {
				return hd.status, bad
			}
			b = b[size:]
		}
		switch {
		case err != nil:
			return 0, err
		case len(b) > c.endpoint.backend.engine.options.MaxHead:
			return 0, errHeadTooLong
		}
	}
}

// errNoRoom is for pods that take no request at all.
var errNoRoom = errors.New("it takes no request over HTTP/2")

// checkStream asks over HTTP/2 and returns the status.
func (c *conn) checkStream(ctx context.Context, path string) (int, error) {
	err := c.introduce(ctx)
	h := c.http2
	defer func() {
		h.Close()
		<-h.Done()
	}()
	if err != nil {
		return 0, err
	}
	r := &exchange.Request{Method: []byte("GET"), Host: []byte(c.endpoint.text), Target: []byte(path)}
	r.Header.Add("user-agent", checker)
	s, err := h.Open(r, nil, true)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errNoRoom, err)
	}
	defer s.Close()
	for {
		var header exchange.Header
		switch hd, ok, err := s.Head(&header); {
		case err != nil:
			return 0, err
		case ok:
			return hd.Status, nil
		}
		select {
		case <-s.Arrived():
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

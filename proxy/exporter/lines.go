package exporter

import (
	"context"
	"net"
	"sync"
)

// lines are the connections that are there. net/http leaves one open that still has a
// stream, and so the one to a collector that stalls.
type lines struct {
	dialer func(ctx context.Context, network, address string) (net.Conn, error)

	mu    sync.Mutex
	open  map[*line]struct{}
	ended bool
}

// line is one of them.
type line struct {
	net.Conn
	of *lines
}

// Close implements net.Conn.
func (c *line) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

func (l *lines) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := l.dialer(ctx, network, address)
	if err != nil {
		return nil, err
	}
	kept := &line{c, l}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended { // nobody waits for it any more
		c.Close()
		return nil, net.ErrClosed
	}
	l.open[kept] = struct{}{}
	return kept, nil
}

// end cuts them, and lets no other come.
func (l *lines) end() {
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	l.cut()
}

// cut ends them all, whatever waits for them.
func (l *lines) cut() {
	l.mu.Lock()
	all := make([]*line, 0, len(l.open))
	for c := range l.open {
		all = append(all, c)
	}
	l.mu.Unlock()
	for _, c := range all {
		c.Close()
	}
}

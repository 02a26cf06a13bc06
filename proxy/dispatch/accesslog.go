package dispatch

import (
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"quayside.io/proxy/accesslog"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
)

// Lines takes the lines of the access log. It must not wait.
type Lines interface {
	// Line takes one, without its end. The bytes are borrowed until it returns.
	Line(b []byte)
}

// AccessLog is what is logged of requests.
type AccessLog struct {
	Lines  Lines // nil: nothing is
	Format *accesslog.Format
	// Share is how many of the requests are logged, from 0 to 1. Those that end with a
	// status of 500 or more all are.
	Share float64
}

// logging is an AccessLog as the table in force wants it.
type logging struct {
	AccessLog
	skip    filter.Patterns
	keep    func(r *accesslog.Record) bool // nil: all
	records *sync.Pool
}

// logging returns how requests are logged under f, which may be nil; nil: not at all.
func (a AccessLog) with(f *filter.Front, records *sync.Pool) *logging {
	if a.Lines == nil || f != nil && f.Log.Off {
		return nil
	}
	l := &logging{AccessLog: a, records: records}
	if f != nil {
		l.skip, l.keep = f.Log.Skip, f.Log.Keep
		if f.Log.Format != nil {
			l.Format = f.Log.Format
		}
	}
	return l
}

// log writes the line of a request of p that has ended.
func (l *logging) log(p *plan, ex *exchange.Exchange, now time.Time, took time.Duration, broken bool) {
	if l.Share < 1 && ex.Response.Status < 500 && rand.Float64() >= l.Share || l.skip.Match(ex.Request.Asked.Target) {
		return
	}
	r, _ := l.records.Get().(*accesslog.Record)
	r.Exchange, r.Place, r.Ended, r.Took, r.Broken = ex, p.place, now, took, broken
	r.Hostname = p.dispatcher.tools.Place.Hostname
	if l.keep == nil || l.keep(r) {
		l.Lines.Line(l.Format.Line(r))
	}
	r.Reset()
	l.records.Put(r)
}

// placeOf is where a plan's requests are routed to, in the words of the log.
func placeOf(p *plan) accesslog.Place {
	rt := p.route
	if rt == nil {
		return accesslog.Place{}
	}
	return accesslog.Place{
		Namespace: rt.Owner.Namespace, Ingress: rt.Owner.Name, Service: rt.Service.Name, Port: rt.Port, Host: rt.Host, Path: rt.Path,
		Upstream: rt.Service.Namespace + "-" + rt.Service.Name + "-" + rt.Port, Split: len(rt.Split) > 0,
	}
}

// tunnelLine is the line of an upgraded connection, and its span, which are written when
// that has ended. The exchange is long reused by then.
type tunnelLine struct {
	plan *plan
	log  *logging // nil: there is no line
	ex   *exchange.Exchange
	sent atomic.Int64
}

// write ends the tunnel for the log and the trace.
func (t *tunnelLine) write() {
	if t == nil {
		return
	}
	now := time.Now()
	t.ex.Response.Sent = t.sent.Load()
	t.plan.tell(t.log, t.ex, now, now.Sub(t.ex.Request.Received), false)
}

// through returns the client's connection, counted.
func (t *tunnelLine) through(client io.ReadWriteCloser) io.ReadWriteCloser {
	if t == nil {
		return client
	}
	return &counted{client, &t.sent}
}

// counted counts what is written.
type counted struct {
	io.ReadWriteCloser
	sent *atomic.Int64
}

// Socket makes c a socket.Reader, as exchange.Response.Upgraded has it, for a client that is
// one: only what is written is counted.
func (c *counted) Socket() (ahead []byte, from syscall.RawConn) {
	if s, ok := c.ReadWriteCloser.(interface {
		Socket() ([]byte, syscall.RawConn)
	}); ok {
		return s.Socket()
	}
	return nil, nil // only Read will do
}

// Write implements io.Writer.
func (c *counted) Write(b []byte) (int, error) {
	n, err := c.ReadWriteCloser.Write(b)
	c.sent.Add(int64(n))
	return n, err
}

// CloseWrite ends one direction where the connection can do so, or both.
func (c *counted) CloseWrite() error {
	if half, ok := c.ReadWriteCloser.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

package h2

import (
	"cmp"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/frame"
)

// Options are what a Server is made with. Zero values mean the defaults.
type Options struct {
	// Handler answers the requests.
	Handler exchange.Handler
	Log     *slog.Logger
	// Timeout bounds every silence of a client: between requests, within a frame
	// or a field block, in the middle of a body, not granting window or not
	// reading. 60 s.
	Timeout time.Duration
	// HeadSize is the largest request head, counted as RFC 9113 section 6.5.2 does:
	// names, values and 32 bytes per field. 32 KiB.
	HeadSize int
	// Streams is how many requests a client may have under way on one connection;
	// 128.
	Streams int
	// RestAfter is how long a connection waits for its next request before it rests, if it
	// is a Rester; it may take twice as long. 1 s.
	RestAfter time.Duration
}

// Peer is what is known about a connection before its first frame.
type Peer struct {
	Client netip.Addr
	TLS    bool
	// Port is the one that the client connected to, as text, where a PROXY header tells.
	Port []byte
	// Handshake is what the client showed when that began.
	Handshake *exchange.Handshake
	// Covers reports whether the connection may carry requests for a host, which
	// has no port. Others are answered 421. Nil: all.
	Covers func(host string) bool
	// Asked, if set, is called when the client opens its first stream.
	Asked func()
}

// Server serves connections that others have accepted.
type Server struct {
	options Options
	streams sync.Pool
	buffers frame.Buffers // for what is about to be written
	dates   dates
	stats   stats

	leaving atomic.Bool
	limits  atomic.Pointer[Limits]

	mu     sync.Mutex
	conns  map[*conn]struct{}
	rested map[*rested]struct{} // and no conns
}

// stats are what the metrics show.
type stats struct {
	streams  atomic.Int64
	refused  atomic.Uint64
	resets   atomic.Uint64
	overdrew atomic.Uint64
	faults   atomic.Uint64
}

// New returns a Server.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Timeout = cmp.Or(o.Timeout, time.Minute)
	o.HeadSize = cmp.Or(o.HeadSize, 32<<10)
	o.Streams = cmp.Or(o.Streams, 128)
	o.RestAfter = cmp.Or(o.RestAfter, time.Second)
	s := &Server{options: o, conns: map[*conn]struct{}{}, rested: map[*rested]struct{}{}}
	s.streams.New = func() any { return newStream() }
	s.SetLimits(Limits{})
	return s
}

// Serve serves one connection until it ends, and closes it; or until it rests, see Rester.
func (s *Server) Serve(nc net.Conn, p *Peer) {
	c := newConn(s, nc, p)
	s.mu.Lock()
	s.conns[c] = struct{}{}
	s.mu.Unlock()
	c.serve(c.greet)
}

// Limits bound what one connection carries. Zeros are those of Options, and no bound.
type Limits struct {
	// Streams is how many requests may be under way, on connections that begin from
	// now on. Requests is how many there may be in all, before the client is asked to
	// open another connection.
	Streams, Requests int
	// Idle is how long a connection may wait for its next request, and Body how long a
	// client may be silent within a frame, or the body of a request.
	Idle, Body time.Duration
	// HeadSize is that of Options, for requests from now on, and LineSize is the longest
	// field, name and value, in bytes; 0: no bound.
	HeadSize, LineSize int
}

// SetLimits declares them.
func (s *Server) SetLimits(l Limits) {
	l.Streams = cmp.Or(l.Streams, s.options.Streams)
	l.Idle, l.Body = cmp.Or(l.Idle, s.options.Timeout), cmp.Or(l.Body, s.options.Timeout)
	l.HeadSize = cmp.Or(l.HeadSize, s.options.HeadSize)
	s.limits.Store(&l)
}

// SetLeaving declares whether clients should reconnect elsewhere. While they
// should, every connection is told so by GOAWAY: those that are there at once, others
// by their first request. What they have asked is answered.
func (s *Server) SetLeaving(leaving bool) {
	s.leaving.Store(leaving)
	if !leaving {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.leave()
	}
	for r := range s.rested {
		r.leave()
	}
}

// Collector returns the metrics of s. Those of requests are the handler's.
func (s *Server) Collector() prometheus.Collector {
	return &collector{
		server:      s,
		connections: prometheus.NewDesc("quayside_http2_connections", "Open HTTP/2 connections of clients.", nil, nil),
		streams:     prometheus.NewDesc("quayside_http2_streams", "Requests under way over HTTP/2.", nil, nil),
		refused:     prometheus.NewDesc("quayside_http2_refused_streams_total", "Streams refused because the client had too many.", nil, nil),
		resets:      prometheus.NewDesc("quayside_http2_client_resets_total", "Streams that clients reset before they were answered.", nil, nil),
		faults: prometheus.NewDesc("quayside_http2_connection_errors_total",
			"Connections ended because the client broke the protocol, or asked for too much work.", []string{"reason"}, nil),
	}
}

type collector struct {
	server                                        *Server
	connections, streams, refused, resets, faults *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.connections, c.streams, c.refused, c.resets, c.faults} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	s := c.server
	s.mu.Lock()
	open := len(s.conns) + len(s.rested)
	s.mu.Unlock()
	ch <- prometheus.MustNewConstMetric(c.connections, prometheus.GaugeValue, float64(open))
	ch <- prometheus.MustNewConstMetric(c.streams, prometheus.GaugeValue, float64(s.stats.streams.Load()))
	ch <- prometheus.MustNewConstMetric(c.refused, prometheus.CounterValue, float64(s.stats.refused.Load()))
	ch <- prometheus.MustNewConstMetric(c.resets, prometheus.CounterValue, float64(s.stats.resets.Load()))
	ch <- prometheus.MustNewConstMetric(c.faults, prometheus.CounterValue, float64(s.stats.faults.Load()), "protocol")
	ch <- prometheus.MustNewConstMetric(c.faults, prometheus.CounterValue, float64(s.stats.overdrew.Load()), "flood")
}

// dates is the Date field of this second, formatted once.
type dates struct{ at atomic.Pointer[date] }

type date struct {
	second int64
	text   []byte
}

func (d *dates) now(now time.Time) []byte {
	have := d.at.Load()
	if second := now.Unix(); have == nil || have.second != second {
		have = &date{second, now.UTC().AppendFormat(nil, "Mon, 02 Jan 2006 15:04:05 GMT")}
		d.at.Store(have)
	}
	return have.text
}

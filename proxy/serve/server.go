package serve

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/route"
)

// Options are what a Server is made with. Zero values mean the defaults.
type Options struct {
	// Handler answers the requests.
	Handler exchange.Handler
	// Certificate returns the certificate for a ClientHello, or nil.
	Certificate func(hello *tls.ClientHelloInfo) *tls.Certificate
	// ClientCAs reports whether clients that ask for a server name are asked for a
	// certificate, and by which authorities; nil: any. What they show is not verified
	// here. Nil: nobody is asked.
	ClientCAs func(serverName string) (authorities *x509.CertPool, asked bool)
	// TLSPolicy, if set, returns how clients may speak TLS now; nil: as all may.
	TLSPolicy func() *route.TLSPolicy
	// Ciphers, if set, returns the suites before TLS 1.3 of handshakes for a server name;
	// nil: those of all.
	Ciphers func(serverName string) []uint16
	// OfferHTTP2, if set, reports whether handshakes for a server name offer HTTP/2, if
	// that is said; else they do as all.
	OfferHTTP2 func(serverName string) (offered, said bool)
	Log        *slog.Logger
	// TrustedProxies may say who the client is in PROXY protocol headers. Nobody
	// else is believed.
	TrustedProxies []netip.Prefix
	// ProxyProtocol expects a PROXY header, version 1 or 2, on every connection.
	ProxyProtocol bool
	// Timeout bounds the reading of a request head, and every silence of a
	// client: between requests, in the middle of a body, not reading the
	// response. 60 s.
	Timeout time.Duration
	// RestAfter is how long a connection waits for its next request before it gives
	// the memory of the last one back; it may take twice as long. 1 s.
	RestAfter time.Duration
	// HeadSize is the largest request head, unless Limits allow a larger one; 32 KiB. A
	// connection that is in use has memory for one, without TLS half of that as long as
	// requests are simple.
	HeadSize int
	// GracePeriod is how long a drain waits for requests under way; 30 s.
	GracePeriod time.Duration
	// LameDuck is how long a drain goes on accepting, until the news that this
	// proxy leaves has reached those who send it connections. Without any, clients
	// that have just connected and not yet sent a byte may be reset.
	LameDuck time.Duration
	// Passthrough, if set, takes the connections of some server names undecrypted.
	Passthrough Passthrough
	// HTTP2, if set, serves the connections that negotiate HTTP/2, and those that
	// begin with its preface where the listener has H2C.
	HTTP2 HTTP2
	// Spare, if set, is asked to end one of the connections that HTTP2 serves and that
	// wait for their next request, where few are left of Limits.Connections. It reports
	// whether it does.
	Spare func() bool
	// Draining, if set, waits for upgraded connections until its context ends,
	// and then cuts them.
	Draining func(context.Context)
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Timeout = cmp.Or(o.Timeout, time.Minute)
	o.RestAfter = cmp.Or(o.RestAfter, time.Second)
	o.HeadSize = cmp.Or(o.HeadSize, 32<<10)
	o.GracePeriod = cmp.Or(o.GracePeriod, 30*time.Second)
	return o
}

// Server serves some listeners.
type Server struct {
	options   Options
	http      *fasthttp.Server
	roomy     atomic.Pointer[roomy] // nil: no head may be larger than Options.HeadSize
	tls       *tls.Config           // of all handshakes at first, and of the keys of tickets
	keyless   *tls.Config           // the same without keys, see SetTicketKeys
	policed   atomic.Pointer[policed]
	listeners listeners
	draining  atomic.Bool
	leaving   atomic.Bool
	ending    atomic.Bool // connections that wait for a request end
	limits    atomic.Pointer[Limits]
	headers   atomic.Pointer[ProxyProtocol] // nil: connections have none
	contexts  sync.Pool
	directs   sync.Pool // *direct
	date      date

	handshakes failures
	refused    atomic.Uint64 // connections of clients that there was no room for
	spared     atomic.Uint64 // and that were ended for others

	waiting sync.WaitGroup // for requests of those that rest, and for their ends
	rest    *restPoll      // of these; nil: nobody rests
	again   atomic.Int64   // who is served after a rest, or as roomy

	mu      sync.Mutex
	clients map[*client]struct{}
	resting map[int]*client // by descriptor, and no clients, see rest.go
	bares   map[int]*bare   // those of which less is kept
}

// New returns a Server that does nothing yet.
func New(o Options) *Server {
	o = o.withDefaults()
	s := &Server{
		options: o,
		clients: map[*client]struct{}{},
		resting: map[int]*client{},
		bares:   map[int]*bare{},
	}
	s.listeners.init()
	s.SetLimits(Limits{})
	s.SetProxyProtocol(nil)
	s.contexts.New = func() any { return &requestContext{server: s} }
	s.directs.New = s.newDirect
	s.tls = &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"http/1.1"},
		GetCertificate: s.certificate,
	}
	if o.HTTP2 != nil {
		s.tls.NextProtos = append([]string{h2}, s.tls.NextProtos...)
	}
	s.keyless = s.tls.Clone()
	if o.ClientCAs != nil || o.TLSPolicy != nil || o.Passthrough != nil || o.Ciphers != nil || o.OfferHTTP2 != nil {
		s.tls.GetConfigForClient = s.configFor
	}
	s.http = s.newHTTP(o.HeadSize)
	return s
}

// newHTTP returns fasthttp's server for heads of so many bytes at most.
func (s *Server) newHTTP(headSize int) *fasthttp.Server {
	o := &s.options
	h := &fasthttp.Server{
		Handler:               s.handle,
		ErrorHandler:          s.refuse,
		HeaderReceived:        readHead,
		ExpectHandler:         s.expect,
		ConnState:             changed,
		Logger:                quietLogger{o.Log},
		ReadTimeout:           o.Timeout,
		IdleTimeout:           o.Timeout, // as ReadTimeout a sign that client.SetReadDeadline interprets
		ReadBufferSize:        headSize,
		MaxRequestBodySize:    prefetched,
		StreamRequestBody:     true,
		NoDefaultServerHeader: true,
		NoDefaultContentType:  true,
		CloseOnShutdown:       true,
		Concurrency:           math.MaxInt32, // Limits bound it, and with words
		MaxIdleWorkerDuration: time.Second,   // their stacks are larger than those of who rests

		DisablePreParseMultipartForm: true,
	}
	if o.HTTP2 != nil {
		h.NextProto(h2, s.serveHTTP2) // clients that negotiate HTTP/2 are served by Options.HTTP2
	}
	h.NextProto(rawProtocol, s.passOn)
	h.NextProto(directProtocol, s.serveDirect)
	return h
}

// SetLeaving declares whether clients should reconnect elsewhere. While they
// should, every response ends its connection, and everything is served as before.
func (s *Server) SetLeaving(leaving bool) { s.leaving.Store(leaving) }

// Limits bound how many connections clients may have, and what they may do with one.
// Zeros are those of Options, and no bound.
type Limits struct {
	// Connections is how many there may be at once. Those that are there stay.
	Connections int
	// Requests is how many a connection may carry.
	Requests int
	// Idle is how long it may wait for its next request; negative: it carries one alone.
	// Head is how long the head of a request may take, and Body how long a client may be
	// silent within a body.
	Idle, Head, Body time.Duration
	// HeadSize and LineSize bound the head of a request, and in it the request line and
	// each field, in bytes. More than Options.HeadSize is for connections that begin, or go
	// on after a rest.
	HeadSize, LineSize int
}

// SetLimits declares them, for what clients send from now on.
func (s *Server) SetLimits(l Limits) {
	l.Idle = cmp.Or(l.Idle, s.options.Timeout)
	l.Head, l.Body = cmp.Or(l.Head, s.options.Timeout), cmp.Or(l.Body, s.options.Timeout)
	l.HeadSize = cmp.Or(l.HeadSize, s.options.HeadSize)
	l.Connections = cmp.Or(l.Connections, math.MaxInt)
	s.limits.Store(&l)
	s.makeRoom(l.HeadSize)
}

// certificate chooses by what a client asks for.
func (s *Server) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if s.options.Certificate != nil {
		if c := s.options.Certificate(hello); c != nil {
			return c, nil
		}
	}
	return nil, nil // crypto/tls then says: unrecognized_name
}

// Run serves until ctx ends, then drains. It returns an error at once if a
// required listener declared before cannot be opened; others are tried again.
func (s *Server) Run(ctx context.Context) error {
	s.letRest()
	if err := s.reconcile(true); err != nil {
		s.closeListeners()
		s.listeners.serving.Wait()
		if s.rest != nil {
			s.rest.close()
		}
		return err
	}
	if s.rest != nil {
		s.waiting.Go(func() { s.rest.run(s.awake) })
	}
	retry := time.NewTicker(listenRetry)
	defer retry.Stop()
	look := time.NewTicker(s.options.RestAfter)
	defer look.Stop()
	var told uint64
	for {
		select {
		case <-ctx.Done():
			return s.drain()
		case <-s.listeners.changed:
		case <-look.C:
			s.lookForIdle()
			s.endSilent()
			told = s.tellRefused(told)
			continue
		case <-retry.C:
			if !s.listeners.failing() {
				continue
			}
		}
		s.reconcile(false)
	}
}

// silentFor is the patience of a drain with connections without a request; that
// of net/http's Shutdown. They would last for Options.Timeout otherwise.
const silentFor = 5 * time.Second

// drain lets requests under way finish: first every response says that its
// connection ends, then nothing more is accepted, and what is left when the
// grace period has passed is cut.
func (s *Server) drain() error {
	s.draining.Store(true)
	if s.options.LameDuck > 0 {
		s.acceptSilent()
		time.Sleep(s.options.LameDuck)
	}
	s.closeListeners()
	s.ending.Store(true)
	s.cutWaiting()
	if s.rest != nil {
		s.rest.close()
	}
	grace, cancel := context.WithTimeout(context.Background(), s.options.GracePeriod)
	defer cancel()
	defer time.AfterFunc(min(silentFor, s.options.GracePeriod/4), s.cutSilent).Stop()
	s.http.ShutdownWithContext(grace) // its other errors say that the listeners are closed already
	if s.untilServed(grace); grace.Err() != nil {
		s.options.Log.Warn("the grace period is over; cutting what is left", "connections", s.Connections())
	}
	s.cut()
	if s.options.Draining != nil {
		s.options.Draining(grace)
	}
	s.waiting.Wait()
	s.listeners.serving.Wait()
	return nil
}

// untilServed waits for connections that have gone on after a rest, and for those of a roomy
// server. To fasthttp they are open only once it has them, and it may have found before that
// none is; nor does it end those that wait, where it has no listener.
func (s *Server) untilServed(grace context.Context) {
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for s.again.Load() > 0 {
		select {
		case <-look.C:
			s.cutWaiting()
		case <-grace.Done():
			return
		}
	}
}

// Connections is the number of client connections.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.openLocked()
}

func (s *Server) openLocked() int { return len(s.clients) + len(s.resting) + len(s.bares) }

// Waiting is how many client connections wait for their next request.
func (s *Server) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.resting) + len(s.bares)
	for c := range s.clients {
		if c.rest.Load() != busy {
			n++
		}
	}
	return n
}

func (s *Server) left(c *client) {
	s.mu.Lock()
	delete(s.clients, c)
	s.mu.Unlock()
}

// cut closes every connection that is not a tunnel.
func (s *Server) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.clients {
		if !c.tunnel.Load() {
			c.hangUp()
		}
	}
}

// cutSilent closes every connection that never asked anything. Most of them are
// orphans: the address moved between the handshake and the first request, and
// what the client sends arrives elsewhere.
func (s *Server) cutSilent() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.clients {
		if !c.asked.Load() {
			c.hangUp()
		}
	}
}

// quietLogger takes what fasthttp has to say about single connections.
type quietLogger struct{ log *slog.Logger }

// Printf implements fasthttp.Logger.
func (l quietLogger) Printf(format string, args ...any) {
	l.log.Debug("connection", "event", fmt.Sprintf(format, args...))
}

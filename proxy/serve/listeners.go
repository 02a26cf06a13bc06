package serve

import (
	"cmp"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"quayside.io/proxy/socket"
)

// listenRetry is how often an address that could not be opened is tried again.
const listenRetry = 2 * time.Second

// Listener is an address to serve on.
type Listener struct {
	Address string // host:port
	TLS     bool
	// H2C serves clients that begin with HTTP/2's preface as Options.HTTP2 does;
	// without TLS only, where nothing else can tell. Each connection costs a read
	// more.
	H2C bool
	// Required makes Run fail if the address cannot be opened at its start.
	Required bool
}

// ListenerState is a Listener and what became of it.
type ListenerState struct {
	Listener
	Bound string // the address as bound; empty if it is not
	Error string // why not
}

// listeners holds what is wanted and what there is.
type listeners struct {
	changed chan struct{}
	serving sync.WaitGroup

	mu     sync.Mutex
	want   []Listener
	have   map[Listener]*listener
	errors map[Listener]error
}

func (l *listeners) init() {
	l.changed = make(chan struct{}, 1)
	l.have = map[Listener]*listener{}
	l.errors = map[Listener]error{}
}

func (l *listeners) failing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.errors) > 0
}

// SetListeners declares the addresses to serve on. Connections of a listener
// that goes live on.
func (s *Server) SetListeners(want []Listener) {
	l := &s.listeners
	l.mu.Lock()
	l.want = slices.Clone(want)
	l.mu.Unlock()
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// Listeners returns what is wanted and what became of it, ordered by address.
func (s *Server) Listeners() []ListenerState {
	l := &s.listeners
	l.mu.Lock()
	defer l.mu.Unlock()
	var states []ListenerState
	for _, w := range l.want {
		st := ListenerState{Listener: w}
		if have := l.have[w]; have != nil {
			st.Bound = have.Addr().String()
		}
		if err := l.errors[w]; err != nil {
			st.Error = err.Error()
		}
		states = append(states, st)
	}
	slices.SortFunc(states, func(a, b ListenerState) int { return cmp.Compare(a.Address, b.Address) })
	return states
}

// reconcile opens what is missing, then closes what is no longer wanted. At
// first it gives up if something required cannot be opened.
func (s *Server) reconcile(first bool) (required error) {
	l := &s.listeners
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.errors)
	wanted := map[Listener]bool{}
	var failed []error
	for _, w := range l.want {
		wanted[w] = true
		if l.have[w] != nil {
			continue
		}
		socket, err := listen(w.Address, !w.TLS)
		if err != nil {
			l.errors[w] = err
			if first && w.Required {
				return err
			}
			failed = append(failed, err)
			continue
		}
		open := &listener{Listener: socket, server: s, tls: w.TLS, h2c: w.H2C && s.options.HTTP2 != nil, done: make(chan struct{})}
		l.have[w] = open
		l.serving.Go(func() {
			if err := s.http.Serve(open); err != nil {
				s.options.Log.Error("a listener failed", "address", w.Address, "error", err)
			}
		})
		s.options.Log.Info("listening", "address", socket.Addr(), "tls", w.TLS)
	}
	for at, open := range l.have {
		if !wanted[at] {
			open.Close()
			delete(l.have, at)
			s.options.Log.Info("no longer listening", "address", at.Address)
		}
	}
	if len(failed) > 0 {
		s.options.Log.Error("cannot listen; will try again", "error", errors.Join(failed...))
	}
	return nil
}

// acceptSilent has every listener accept clients that have said nothing yet, too.
func (s *Server) acceptSilent() {
	l := &s.listeners
	l.mu.Lock()
	defer l.mu.Unlock()
	for at, open := range l.have {
		if err := acceptSilent(open.Listener); err != nil {
			s.options.Log.Warn("clients that are silent will be cut off at the end of the drain", "address", at.Address, "error", err)
		}
	}
}

func (s *Server) closeListeners() {
	l := &s.listeners
	l.mu.Lock()
	defer l.mu.Unlock()
	for at, open := range l.have {
		open.Close()
		delete(l.have, at)
	}
}

// listener accepts clients.
type listener struct {
	net.Listener
	server *Server
	tls    bool
	h2c    bool

	once sync.Once
	done chan struct{}
}

// Accept implements net.Listener. Who there is no room for is turned away. Running out of
// descriptors ends neither the listener nor the process: it waits until some are free
// again.
func (l *listener) Accept() (net.Conn, error) {
	pause := 5 * time.Millisecond
	for {
		nc, err := l.Listener.Accept()
		if err == nil {
			if nc, err = l.wrap(nc); err == errCrowded || err == nil && l.server.serves(nc) {
				continue
			}
			return nc, err
		}
		if !isPassing(err) {
			return nil, err
		}
		l.server.options.Log.Warn("cannot accept a connection; will try again", "error", err, "in", pause)
		select {
		case <-l.done:
		case <-time.After(pause):
		}
		pause = min(2*pause, time.Second)
	}
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.Listener.Close()
}

// isPassing reports whether accepting may work again soon.
func isPassing(err error) bool {
	return socket.IsShortage(err) || errors.Is(err, syscall.ECONNABORTED) || errors.Is(err, syscall.EPROTO)
}

func (l *listener) wrap(nc net.Conn) (net.Conn, error) {
	c, err := newClient(nc, l)
	if err != nil {
		return nil, err
	}
	switch {
	case l.tls:
		c.outer = &tlsClient{Conn: tls.Server(c, l.server.tls), client: c}
	case l.h2c:
		c.outer = &plainClient{client: c}
	case directs && c.raw != nil && c.Conn == nc:
		c.outer = &directClient{client: c}
	default:
		c.outer = c
	}
	return c.outer, nil
}

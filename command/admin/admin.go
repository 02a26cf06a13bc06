package admin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// grace is how long open requests get when the process ends.
const grace = time.Second

// scrapes is how many read /metrics at once.
const scrapes = 4

// Server serves the admin endpoint.
type Server struct {
	addr   string
	log    *slog.Logger
	mux    *http.ServeMux
	access Access
	judge  *judge // nil: nobody is asked about tokens
	states stater
	pace   pace // of /status and /trace
	leads  func() bool

	mu    sync.Mutex
	ready []func() error
}

// New makes a Server for addr, which may be empty: then nothing is served.
func New(addr string, metrics prometheus.Gatherer, log *slog.Logger) *Server {
	s := &Server{addr: addr, log: log, mux: http.NewServeMux()}
	s.State(func() any { return nil })
	s.page("/metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError,
		MaxRequestsInFlight: scrapes,
	}).ServeHTTP)
	s.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	s.mux.HandleFunc("GET /readyz", s.serveReady)
	s.page("/state", s.serveState)
	return s
}

// Ready adds a check: the process is ready when every check returns nil.
func (s *Server) Ready(check func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = append(s.ready, check)
}

// State sets what /state shows; it is called for each request, or less often where
// it takes long.
func (s *Server) State(state func() any) { s.states.set(state) }

// Handler is the endpoint without its socket.
func (s *Server) Handler() http.Handler { return s.mux }

// Run serves until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	if s.addr == "" {
		<-ctx.Done()
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.addr)
	if err != nil {
		return fmt.Errorf("admin endpoint: %w; choose another address with --admin", err)
	}
	s.log.Debug("admin endpoint", "address", listener.Addr().String())
	server := &http.Server{
		Handler: s.mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 2 * maxToken,
		ErrorLog:       slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	if s.judge != nil {
		config, err := s.access.tlsConfig()
		if err != nil {
			return errors.Join(err, listener.Close())
		}
		listener = tls.NewListener(listener, config)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		<-ctx.Done()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		if server.Shutdown(last) != nil {
			server.Close()
		}
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("admin endpoint: %w", err)
	}
	<-ended
	return nil
}

func (s *Server) serveReady(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	checks := s.ready
	s.mu.Unlock()
	var why []string
	for _, check := range checks {
		if err := check(); err != nil {
			why = append(why, err.Error())
		}
	}
	if len(why) > 0 {
		http.Error(w, strings.Join(why, "\n"), http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

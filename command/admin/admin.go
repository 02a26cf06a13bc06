package admin

import (
	"context"
	"encoding/json"
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

// Server serves the admin endpoint.
type Server struct {
	addr string
	log  *slog.Logger
	mux  *http.ServeMux

	mu    sync.Mutex
	ready []func() error
	state func() any
}

// New makes a Server for addr, which may be empty: then nothing is served.
func New(addr string, metrics prometheus.Gatherer, log *slog.Logger) *Server {
	s := &Server{addr: addr, log: log, mux: http.NewServeMux(), state: func() any { return nil }}
	s.mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError}))
	s.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	s.mux.HandleFunc("GET /readyz", s.serveReady)
	s.mux.HandleFunc("GET /state", s.serveState)
	return s
}

// Ready adds a check: the process is ready when every check returns nil.
func (s *Server) Ready(check func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = append(s.ready, check)
}

// State sets what /state shows; it is called for each request.
func (s *Server) State(state func() any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = state
}

// Trace adds /trace?target=…, which shows what trace returns. An error is the
// asker's: 400.
func (s *Server) Trace(trace func(target string) (any, error)) {
	s.mux.HandleFunc("GET /trace", func(w http.ResponseWriter, r *http.Request) {
		path, err := trace(r.URL.Query().Get("target"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.writeJSON(w, path)
	})
}

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
		Handler: s.mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
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

func (s *Server) serveState(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	state := s.state
	s.mu.Unlock()
	s.writeJSON(w, state())
}

func (s *Server) writeJSON(w http.ResponseWriter, value any) {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		http.Error(w, "state: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if _, err := w.Write(append(text, '\n')); err != nil {
		s.log.Debug("state not sent", "error", err)
	}
}

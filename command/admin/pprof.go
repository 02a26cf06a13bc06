package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"
)

// Profiles serves profiles of the process, as `go tool pprof` reads them, until ctx
// ends: at addr, which must be on the loopback. They show what the process holds in
// memory, and cost it time.
func Profiles(ctx context.Context, addr string, log *slog.Logger) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("profiles: %w; choose another address with --pprof", err)
	}
	if !isLoopback(listener.Addr().String()) {
		return errors.Join(fmt.Errorf("profiles: %s is no loopback address", addr), listener.Close())
	}
	mux := http.NewServeMux()
	for path, handler := range map[string]http.HandlerFunc{
		"": pprof.Index, "cmdline": pprof.Cmdline, "profile": pprof.Profile, "symbol": pprof.Symbol, "trace": pprof.Trace,
	} {
		mux.HandleFunc("GET /debug/pprof/"+path, func(w http.ResponseWriter, r *http.Request) {
			if !isLocal(r) {
				http.Error(w, "profiles are served on the loopback only", http.StatusForbidden)
				return
			}
			handler(w, r)
		})
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		<-ctx.Done()
		server.Close()
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("profiles: %w", err)
	}
	<-ended
	return nil
}

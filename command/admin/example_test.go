package admin_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"quayside.io/command/admin"
)

// A component says when it is ready, and what it does. Server.Run opens the socket that
// this example does without.
func Example() {
	s := admin.New("127.0.0.1:7472", prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	var synced atomic.Bool
	s.Ready(func() error {
		if !synced.Load() {
			return errors.New("the cluster has not been seen in full yet")
		}
		return nil
	})
	s.State(func() any { return map[string]int{"routes": 2} })

	get := func(path string) {
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		body, _ := io.ReadAll(w.Result().Body)
		fmt.Println(path, w.Code, strings.Join(strings.Fields(string(body)), " "))
	}
	get("/readyz")
	synced.Store(true)
	get("/readyz")
	get("/state")
	// Output:
	// /readyz 503 the cluster has not been seen in full yet
	// /readyz 200 ok
	// /state 200 { "routes": 2 }
}

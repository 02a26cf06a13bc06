package admin

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// The status is worked out for one reader at a time; who comes meanwhile is told to
// come again.
func TestStatusIsForOneReaderAtATime(t *testing.T) {
	s := New("", prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	get := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/status", nil))
		return w
	}
	second := 0
	s.Status(func() any {
		if second == 0 {
			second = get().Code
		}
		return map[string]string{"a": "status"}
	})
	if w := get(); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"a"`) {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
	if second != http.StatusTooManyRequests {
		t.Errorf("somebody who came meanwhile got %d", second)
	}
}

package admin

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// asked asks s for its status until ctx ends.
func asked(ctx context.Context, s *Server) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/status", nil))
	return w
}

func quiet() *Server { return New("", prometheus.NewRegistry(), slog.New(slog.DiscardHandler)) }

// The status is worked out for one reader at a time; who comes meanwhile is told to
// come again.
func TestStatusIsForOneReaderAtATime(t *testing.T) {
	s, second := quiet(), 0
	s.Status(func(context.Context) func() any {
		return func() any {
			if second == 0 {
				second = asked(t.Context(), s).Code
			}
			return map[string]string{"a": "status"}
		}
	})
	if w := asked(t.Context(), s); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"a"`) {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
	if second != http.StatusTooManyRequests {
		t.Errorf("somebody who came meanwhile got %d", second)
	}
}

// Whoever asks without pause gets a tenth of a processor, and is served all the same;
// where the work is short nobody is sent away.
func TestStatusLeavesTheProcessorToOthers(t *testing.T) {
	for _, c := range []struct {
		cost  time.Duration
		codes map[int]bool
	}{
		{time.Millisecond, map[int]bool{200: true}},
		{100 * time.Millisecond, map[int]bool{200: true, 429: true}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, worked, served := quiet(), time.Duration(0), 0
			s.Status(func(context.Context) func() any {
				return func() any { worked += c.cost; time.Sleep(c.cost); return "status" }
			})
			const length = time.Minute
			for begin := time.Now(); time.Since(begin) < length; {
				w := asked(t.Context(), s)
				switch {
				case !c.codes[w.Code]:
					t.Fatalf("%s of work: %d: %s", c.cost, w.Code, w.Body)
				case w.Code == http.StatusOK:
					served++
				case w.Header().Get("Retry-After") == "":
					t.Fatal("nobody says when to come again")
				default:
					time.Sleep(time.Millisecond)
				}
			}
			if share := worked.Seconds() / length.Seconds(); share > 0.105 || served < 50 {
				t.Errorf("%s of work: %d were served with %.0f%% of a processor", c.cost, served, 100*share)
			}
		})
	}
}

// A reader who has gone leaves his place at once, and nothing is worked out for him.
func TestStatusEndsWithItsReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, worked := quiet(), 0
		s.Status(func(ctx context.Context) func() any {
			if worked == 0 {
				<-ctx.Done()
			}
			return func() any { worked++; return "status" }
		})
		gone, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		begin := time.Now()
		asked(gone, s)
		if took := time.Since(begin); took != time.Second || worked > 0 {
			t.Errorf("who had gone after a second held the place for %s, and was worked for %d times", took, worked)
		}
		worked = 1
		if w := asked(t.Context(), s); w.Code != http.StatusOK {
			t.Errorf("the next reader got %d", w.Code)
		}
	})
}

// Whoever asks for the leader is sent to another by a process that does not lead;
// whoever does not is answered.
func TestTheLeaderIsAskedFor(t *testing.T) {
	s, leads := quiet(), false
	s.LedBy(func() bool { return leads })
	s.Status(func(context.Context) func() any { return func() any { return "status" } })
	s.Trace(func(context.Context, string) (func() any, error) { return func() any { return "trace" }, nil })
	get := func(path string) int {
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code
	}
	for _, led := range []bool{false, true} {
		leads = led
		want := map[bool]int{false: http.StatusMisdirectedRequest, true: http.StatusOK}[led]
		for path, want := range map[string]int{"/status?leader=true": want, "/trace?target=x&leader=true": want, "/status": http.StatusOK, "/trace?target=x": http.StatusOK} {
			if got := get(path); got != want {
				t.Errorf("leads %v: %s is answered %d, want %d", led, path, got, want)
			}
		}
	}
}

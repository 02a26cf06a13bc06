package admin_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"quayside.io/command/admin"
)

type item struct {
	Name string   `json:"name"`
	Tags []string `json:"tags,omitempty"`
}

type inner struct {
	Second []item         `json:"second"`
	None   []item         `json:"none"`
	Map    map[string]int `json:"map,omitempty"`
}

type outer struct {
	Kind  string `json:"kind"`
	First []item `json:"first"`
	*inner
	Deep struct {
		Third []*item `json:"third"`
	} `json:"deep"`
	Left   string `json:"left,omitempty"`
	hidden int
}

func sample() *outer {
	o := &outer{Kind: "test <&>", hidden: 1, inner: &inner{Map: map[string]int{"b": 1, "a": 2}}}
	for i := range 5 {
		o.First = append(o.First, item{Name: fmt.Sprintf("f%d", i), Tags: []string{"x", "y"}})
	}
	for i := range 3 {
		o.Second = append(o.Second, item{Name: fmt.Sprintf("s%d", i)})
		o.Deep.Third = append(o.Deep.Third, &item{Name: fmt.Sprintf("t%d", i)})
	}
	o.None = []item{}
	return o
}

func showing(state func() any) *admin.Server {
	s := admin.New("", prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	s.State(state)
	return s
}

// What is streamed is what encoding/json writes in one piece.
func TestStateIsWrittenAsByEncodingJSON(t *testing.T) {
	empty := &outer{}
	for _, value := range []any{sample(), *sample(), empty, &outer{inner: &inner{}}, nil, 1, "a", []item{{Name: "a"}}, []item{}, map[string]any{"a": []int{1}}, time.Unix(0, 0).UTC(), struct{}{}, struct{ At time.Time }{}, json.RawMessage(`{"a":1}`)} {
		want, err := json.MarshalIndent(value, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if code, got := get(t, showing(func() any { return value }), "/state"); code != 200 || got != string(want)+"\n" {
			t.Errorf("%T: %d\n%s", value, code, cmp.Diff(string(want)+"\n", got))
		}
	}
}

// The pages of a plan together hold each element once, and in order, even if the
// plan has changed meanwhile.
func TestPages(t *testing.T) {
	calls := 0
	s := showing(func() any { calls++; return sample() })
	var names []string
	next, pages := "", 0
	for {
		code, body := get(t, s, "/state?limit=4&continue="+next)
		if next == "" {
			code, body = get(t, s, "/state?limit=4")
		}
		if code != 200 {
			t.Fatalf("page %d: %d %s", pages, code, body)
		}
		var page struct {
			outer
			Continue string `json:"continue"`
		}
		page.inner = &inner{}
		if err := json.Unmarshal([]byte(body), &page); err != nil {
			t.Fatalf("%v\n%s", err, body)
		}
		n := len(names)
		for _, i := range append(append([]item{}, page.First...), page.Second...) {
			names = append(names, i.Name)
		}
		for _, i := range page.Deep.Third {
			names = append(names, i.Name)
		}
		if len(names)-n > 4 || page.Kind != "test <&>" {
			t.Errorf("page %d:\n%s", pages, body)
		}
		pages++
		s.Ready(func() error { return nil })
		if next = page.Continue; next == "" {
			break
		}
	}
	if got := strings.Join(names, " "); got != "f0 f1 f2 f3 f4 s0 s1 s2 t0 t1 t2" || pages != 3 {
		t.Errorf("%d pages: %s", pages, got)
	}
	for query, want := range map[string]int{
		"limit=0": 400, "limit=x": 400, "limit=-1": 400, "continue=1.2": 400, "limit=1&continue=a": 400, "limit=1&continue=0.0": 400,
		"limit=1&continue=1.-1": 400, "limit=1&continue=99.0": 410, "limit=9&continue=1.9223372036854775807": 400,
	} {
		if code, _ := get(t, s, "/state?"+query); code != want {
			t.Errorf("%s: %d, want %d", query, code, want)
		}
	}
}

// A plan whose pages nobody may ask for any more is gone, and who asks is told so.
func TestPagesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := showing(func() any { return sample() })
		get(t, s, "/state?limit=1")
		if code, _ := get(t, s, "/state?limit=1&continue=1.1"); code != 200 {
			t.Errorf("at once: %d", code)
		}
		time.Sleep(31 * time.Second)
		if code, _ := get(t, s, "/state?limit=1&continue=1.1"); code != 410 {
			t.Errorf("after half a minute: %d", code)
		}
		if code, _ := get(t, s, "/state?limit=1"); code != 200 {
			t.Error("it does not begin again")
		}
	})
}

// Who asks without pause does not have the plan built each time.
func TestStateIsBuiltInATenthOfTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		built := 0
		s := showing(func() any { built++; time.Sleep(20 * time.Millisecond); return built })
		begin := time.Now()
		for time.Since(begin) < 10*time.Second {
			get(t, s, "/state")
			time.Sleep(time.Millisecond)
		}
		if built > 52 || built < 45 {
			t.Errorf("built %d times in 10 s of 20 ms each, want a tenth of the time", built)
		}
		slow := showing(func() any { built++; time.Sleep(3 * time.Second); return built })
		built = 0
		get(t, slow, "/state")
		time.Sleep(time.Second)
		if _, now := get(t, slow, "/state"); now != "2\n" {
			t.Errorf("after a second it shows an old plan: %s", now)
		}
	})
}

// One reads at a time; another is told to come again.
func TestOneReaderAtATime(t *testing.T) {
	entered, leave := make(chan struct{}, 2), make(chan struct{}) // the last reader may want a plan of its own
	s := showing(func() any { entered <- struct{}{}; <-leave; return 1 })
	done := make(chan int)
	go func() { code, _ := get(t, s, "/state"); done <- code }()
	<-entered
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/state", nil))
	if w.Code != 429 || w.Header().Get("Retry-After") == "" {
		t.Errorf("a second reader: %d %v", w.Code, w.Header())
	}
	close(leave)
	if code := <-done; code != 200 {
		t.Errorf("the first reader: %d", code)
	}
	if code, _ := get(t, s, "/state"); code != 200 {
		t.Errorf("the next reader: %d", code)
	}
}

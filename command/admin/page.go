package admin

import (
	"bufio"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// What a look at the state may cost. A proxy with 3,000 routes spends some 25 ms on
// building and writing it, time that its requests wait for where cores are few.
const (
	// share: what was built is shown again until this many times the cost of
	// building it has passed, so that whoever asks without pause gets a tenth of a
	// core and no more; but never for longer than oldestYet.
	share     = 10
	oldestYet = time.Second
	// continuing is how long a plan is kept for those who read it page by page.
	continuing = 30 * time.Second
	// writing bounds how long one reader holds the place of the only one.
	writing = 20 * time.Second
)

// plan is what /state shows, built once for all of its pages.
type plan struct {
	id    uint64
	value any
	built time.Time
	cost  time.Duration
}

// stater shows the state to one reader at a time.
type stater struct {
	reading sync.Mutex // held while somebody reads

	mu    sync.Mutex
	state func() any
	last  *plan
	plans uint64 // built so far
}

func (s *stater) set(state func() any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.last = state, nil
}

// at returns the plan of that number, nil if it is gone; of number 0 the present one.
func (s *stater) at(id uint64, now time.Time) *plan {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.last
	switch {
	case id != 0:
		if last == nil || last.id != id || now.Sub(last.built) > continuing {
			return nil
		}
		return last
	case last != nil && now.Sub(last.built) < min(share*last.cost, oldestYet):
		return last
	}
	s.plans++
	next := &plan{id: s.plans, built: now, value: s.state()}
	next.cost = time.Since(now)
	s.last = next
	time.AfterFunc(continuing, func() { s.drop(next) })
	return next
}

// drop lets go of a plan that nobody may ask for any more.
func (s *stater) drop(p *plan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == p {
		s.last = nil
	}
}

// tooMany answers who comes while another reads, or too soon.
func tooMany(w http.ResponseWriter, why string) {
	w.Header().Set("Retry-After", retryAfter)
	http.Error(w, why, http.StatusTooManyRequests)
}

// serveState streams /state, or with ?limit=N a page of it: N elements of its lists,
// and "continue", which the next request repeats.
func (s *Server) serveState(w http.ResponseWriter, r *http.Request) {
	if !s.states.reading.TryLock() {
		tooMany(w, "somebody else is reading this page, which is shown to one at a time")
		return
	}
	defer s.states.reading.Unlock()
	limit, id, from, err := pageOf(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p := s.states.at(id, time.Now())
	if p == nil {
		http.Error(w, "the plan that these pages are of is no longer kept: begin again without continue", http.StatusGone)
		return
	}
	if limit == 0 {
		s.stream(&answer{ResponseWriter: w}, p.value, window{to: all})
		return
	}
	s.stream(&answer{ResponseWriter: w}, p.value, window{from: from, to: from + limit, more: func(at int) string { return fmt.Sprintf("%d.%d", p.id, at) }})
}

// maxLimit bounds the elements of one page.
const maxLimit = 1 << 20

// pageOf reads ?limit=N&continue=PLAN.ELEMENT.
func pageOf(r *http.Request) (limit int, id uint64, from int, err error) {
	q := r.URL.Query()
	if text := q.Get("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > maxLimit {
			return 0, 0, 0, fmt.Errorf("limit %q: want a number from 1 to %d", text, maxLimit)
		}
	}
	text := q.Get("continue")
	if text == "" {
		return limit, 0, 0, nil
	}
	first, second, _ := strings.Cut(text, ".")
	id, badID := strconv.ParseUint(first, 10, 64)
	from, badFrom := strconv.Atoi(second)
	if badID != nil || badFrom != nil || id == 0 || from < 0 || from > all-maxLimit || limit == 0 {
		return 0, 0, 0, fmt.Errorf("continue %q: want what the page before said, and a limit", text)
	}
	return limit, id, from, nil
}

// stream writes a value as JSON, a piece at a time.
func (s *Server) stream(w *answer, value any, part window) {
	// Where there is no connection, as in a test, there is no deadline either.
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(writing))
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	buffered := bufio.NewWriterSize(w, 16<<10)
	err := writeJSON(buffered, value, part)
	if err == nil {
		err = buffered.Flush()
	}
	switch {
	case err == nil:
	case w.begun:
		s.log.Debug("answer not sent in full", "error", err)
		panic(http.ErrAbortHandler) // a cut answer must not look whole
	default:
		http.Error(w, "state: "+err.Error(), http.StatusInternalServerError)
	}
}

// answer notes whether anything has been sent, and how long that took.
type answer struct {
	http.ResponseWriter
	begun  bool
	waited time.Duration
}

func (a *answer) Write(b []byte) (int, error) {
	a.begun = true
	begin := time.Now()
	n, err := a.ResponseWriter.Write(b)
	a.waited += time.Since(begin)
	return n, err
}

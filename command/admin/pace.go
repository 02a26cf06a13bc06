package admin

import (
	"context"
	"net/http"
	"sync"
	"time"
)

const (
	// snooze is the longest rest that a reader waits for; before a longer one is over
	// he is told to come again.
	snooze = 50 * time.Millisecond
	// longestRest is less than the patience of `quayside status`.
	longestRest = 4 * time.Second
)

// pace is shared by pages that are worked out for each reader: for one at a time, and
// with a rest in between that leaves them a tenth of a processor, see share.
type pace struct {
	reading sync.Mutex // held while somebody reads
	next    time.Time  // when the next may begin; with reading
}

// paced shows what look finds. Looking may wait for others and ends with the reader;
// what it returns is the work.
func (s *Server) paced(w http.ResponseWriter, r *http.Request, look func(context.Context) (work func() any, err error)) {
	if s.misdirected(w, r) {
		return
	}
	p := &s.pace
	if !p.reading.TryLock() {
		tooMany(w, "somebody else is reading this page, which is shown to one at a time")
		return
	}
	defer p.reading.Unlock()
	rest := time.Until(p.next)
	if rest > snooze {
		tooMany(w, "this page has just been shown, and is long work for this process")
		return
	}
	time.Sleep(rest)
	work, err := look(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if r.Context().Err() != nil { // nobody reads it
		return
	}
	begin, out := time.Now(), &answer{ResponseWriter: w}
	defer func() {
		cost := time.Since(begin) - out.waited // a slow reader costs little
		p.next = time.Now().Add(min((share-1)*cost, longestRest))
	}()
	s.stream(out, work(), window{to: all})
}

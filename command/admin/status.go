package admin

import (
	"net/http"
	"sync"
)

// Status adds /status, which shows what status returns; it is called for each
// request, for one reader at a time.
func (s *Server) Status(status func() any) {
	var reading sync.Mutex
	s.page("/status", func(w http.ResponseWriter, _ *http.Request) {
		if !reading.TryLock() {
			tooMany(w)
			return
		}
		defer reading.Unlock()
		s.stream(w, status(), window{to: all})
	})
}

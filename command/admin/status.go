package admin

import (
	"context"
	"net/http"
)

// ForLeader is a parameter of /status and /trace: whoever sends it is answered 421
// Misdirected Request by a process that does not lead, and may ask another.
const ForLeader = "leader"

// LedBy says when this process leads. Without, it always does.
func (s *Server) LedBy(leads func() bool) { s.leads = leads }

// misdirected answers whoever asks for the leader, where that is somebody else.
func (s *Server) misdirected(w http.ResponseWriter, r *http.Request) bool {
	if s.leads == nil || s.leads() || !r.URL.Query().Has(ForLeader) {
		return false
	}
	http.Error(w, "this process does not lead", http.StatusMisdirectedRequest)
	return true
}

// Status adds /status, which shows what look finds; it is called for each reader, of
// whom there is one at a time, and ends with him. What it returns is long work.
func (s *Server) Status(look func(context.Context) (work func() any)) {
	s.page("/status", func(w http.ResponseWriter, r *http.Request) {
		s.paced(w, r, func(ctx context.Context) (func() any, error) { return look(ctx), nil })
	})
}

// Trace adds /trace?target=…, as Status adds /status. An error is the asker's: 400.
func (s *Server) Trace(look func(ctx context.Context, target string) (work func() any, err error)) {
	s.page("/trace", func(w http.ResponseWriter, r *http.Request) {
		s.paced(w, r, func(ctx context.Context) (func() any, error) { return look(ctx, r.URL.Query().Get("target")) })
	})
}

package cluster

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// heard is when an API server last said something: answered, or sent a piece of a
// watch, where there is a bookmark about once a minute if there is nothing else.
type heard struct {
	at    atomic.Int64 // in ns since 1970
	broke func()       // is called when a watch breaks
}

func newHeard() *heard {
	h := &heard{broke: func() {}}
	h.now() // as old as this process is what it has not heard yet
	return h
}

func (h *heard) now() { h.at.Store(time.Now().UnixNano()) }

// staleness is the metric of it.
func (h *heard) staleness() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "quayside_api_staleness_seconds",
		Help: "Seconds since the API server last answered, or sent something to a watch; before the first time, since this process began. A watch at rest is sent something about once a minute.",
	}, func() float64 { return time.Since(time.Unix(0, h.at.Load())).Seconds() })
}

// wrap returns a transport that notes what comes through another one.
func (h *heard) wrap(to http.RoundTripper) http.RoundTripper { return &listening{to, h} }

type listening struct {
	http.RoundTripper
	heard *heard
}

// RoundTrip implements http.RoundTripper. What stands before an API server that is
// gone says so with an error of the server; that is not hearing from it.
func (l *listening) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := l.RoundTripper.RoundTrip(r)
	if err == nil && answer.StatusCode < 500 {
		l.heard.now()
		answer.Body = &heardBody{answer.Body, l.heard, r.Context(), endOf(r)}
	}
	return answer, err
}

// WrappedRoundTripper is for those of client-go that look for what is below.
func (l *listening) WrappedRoundTripper() http.RoundTripper { return l.RoundTripper }

// endOf is when the watch that a request asks for is to end, or soon before; zero: it asks
// for none.
func endOf(r *http.Request) time.Time {
	query := r.URL.Query()
	life, err := strconv.Atoi(query.Get("timeoutSeconds"))
	if query.Get("watch") == "" || err != nil {
		return time.Time{}
	}
	return time.Now().Add(time.Duration(life)*time.Second - early)
}

type heardBody struct {
	io.ReadCloser
	heard *heard
	ctx   context.Context // of the request
	end   time.Time       // of the watch
}

// Read implements io.Reader.
func (b *heardBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.heard.now()
	}
	if err != nil && time.Now().Before(b.end) && b.ctx.Err() == nil {
		b.heard.broke()
	}
	return n, err
}

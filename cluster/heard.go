package cluster

import (
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// heard is when an API server last said something: answered, or sent a piece of a
// watch, where there is a bookmark about once a minute if there is nothing else.
type heard struct{ at atomic.Int64 } // in ns since 1970

func newHeard() *heard {
	h := &heard{}
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
		answer.Body = &heardBody{answer.Body, l.heard}
	}
	return answer, err
}

// WrappedRoundTripper is for those of client-go that look for what is below.
func (l *listening) WrappedRoundTripper() http.RoundTripper { return l.RoundTripper }

type heardBody struct {
	io.ReadCloser
	heard *heard
}

// Read implements io.Reader.
func (b *heardBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.heard.now()
	}
	return n, err
}

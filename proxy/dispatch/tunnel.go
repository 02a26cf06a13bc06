package dispatch

import (
	"io"
	"sync"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
)

// held keeps what the filters took for an exchange that became a tunnel until the
// tunnel has ended, or turned out never to begin: it stands in for the response's
// body, which is closed then. The exchange itself is long reused.
type held struct {
	io.Closer
	filters filter.Chain
	last    exchange.Exchange // what is known of it: Request.Client and Passed
	once    sync.Once
}

// hold puts off the end of ex, as far as filters are concerned.
func hold(ex *exchange.Exchange, c filter.Chain) {
	r := &ex.Response
	if r.Upgraded == nil || ex.Passed == 0 || !c.Frees() {
		return
	}
	h := &held{Closer: r.Body, filters: c}
	h.last.Request.Client, h.last.Passed = ex.Request.Client, ex.Passed
	ex.Passed = 0
	open := r.Upgraded
	r.Body = h
	r.Upgraded = func(client io.ReadWriteCloser) {
		defer h.free()
		open(client)
	}
}

func (h *held) free() { h.once.Do(func() { h.filters.Finished(&h.last) }) }

// Read implements io.Reader. What an upgraded connection carries is no body.
func (h *held) Read([]byte) (int, error) { return 0, io.EOF }

// Close implements io.Closer.
func (h *held) Close() error {
	h.free()
	if h.Closer == nil {
		return nil
	}
	return h.Closer.Close()
}

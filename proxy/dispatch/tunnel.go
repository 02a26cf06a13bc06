package dispatch

import (
	"io"
	"sync"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
)

// held keeps what the filters took for an exchange that became a tunnel, and what is
// told of it, until the tunnel has ended, or turned out never to begin: it stands in
// for the response's body, which is closed then. The exchange itself is long reused.
type held struct {
	io.Closer
	filters filter.Chain
	last    exchange.Exchange // what filters know of it: Request.Client, Passed and Counted
	line    *tunnelLine       // nil: none
	once    sync.Once
}

// hold puts off the end of ex, as far as filters and the log are concerned.
func (p *plan) hold(ex *exchange.Exchange) {
	r := &ex.Response
	log := p.logging()
	told := log != nil || p.records(ex)
	if r.Upgraded == nil || !told && (ex.Passed == 0 || !p.filters.Frees()) {
		return
	}
	h := &held{Closer: r.Body, filters: p.filters}
	h.last.Request.Client, h.last.Passed, h.last.Counted = ex.Request.Client, ex.Passed, ex.Counted
	ex.Passed, ex.Counted = 0, [2]uint64{}
	if told {
		h.line = &tunnelLine{plan: p, log: log, ex: ex.Copy()}
	}
	open := r.Upgraded
	r.Body = h
	r.Upgraded = func(client io.ReadWriteCloser) {
		defer h.free()
		open(h.line.through(client))
	}
}

func (h *held) free() {
	h.once.Do(func() {
		h.filters.Finished(&h.last)
		h.line.write()
	})
}

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

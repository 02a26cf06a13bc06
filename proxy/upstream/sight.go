package upstream

import (
	"errors"
	"io"
	"time"

	"quayside.io/proxy/exchange"
)

// What the exchange is told of the endpoints that were asked. Nothing is written
// to it once it is over, as that of a tunnel is.

// answered notes the try that the response is from.
func (t *transaction) answered() {
	took := t.since.Sub(t.chosen)
	t.note(exchange.Try{
		Endpoint: t.targets.endpoints[t.at].addr, Status: t.said, Connect: t.linked, Header: took, Took: took, Received: int64(len(t.body.data)),
	})
}

// failed notes a try that came to nothing, if an endpoint was asked.
func (t *transaction) failed(err error) {
	var f *failure
	if !errors.As(err, &f) || f.endpoint == nil {
		return
	}
	took := time.Since(t.chosen)
	try := exchange.Try{Endpoint: f.endpoint.addr, Status: t.said, Connect: t.linked, Took: took}
	if t.said > 0 {
		try.Header = took
	} else {
		try.Failed = f.reason.status()
	}
	t.note(try)
	t.blame(f)
}

func (t *transaction) note(try exchange.Try) {
	u := &t.ex.Upstream
	if u.Began.IsZero() {
		u.Began = t.began
	}
	u.Waited += try.Took
	u.Tries = append(u.Tries, try)
}

// received notes that a piece of the body has come, which waits in body.data.
func (t *transaction) received() {
	last := t.ex.Upstream.Last()
	last.Received += int64(len(t.body.data))
	last.Took = t.since.Sub(t.chosen)
}

// brokeOff counts a body that the endpoint left unfinished.
func (t *transaction) brokeOff() {
	var f *failure
	switch err := t.body.err; {
	case err == nil, err == io.EOF:
	case errors.As(err, &f) && f.endpoint != nil:
		t.blame(f)
	case t.stream != nil:
		t.blame(&failure{reason: connectionLost, endpoint: t.targets.endpoints[t.at]})
	case t.conn != nil:
		t.blame(&failure{reason: connectionLost, endpoint: t.conn.endpoint})
	}
}

// blame counts a failure of the endpoint that it is about: not of one on its way
// out, nor where the client was at fault.
func (t *transaction) blame(f *failure) {
	if f.reason != clientGone && f.reason != clientBody && !t.raced(f) {
		f.endpoint.failed.Add(1)
	}
}

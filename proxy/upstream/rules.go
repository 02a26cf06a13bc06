package upstream

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"quayside.io/proxy/exchange"
)

// fill returns f with ours where it says nothing.
func fill(f, ours exchange.Forwarding) exchange.Forwarding {
	return exchange.Forwarding{
		ConnectTimeout: cmp.Or(f.ConnectTimeout, ours.ConnectTimeout),
		ReadTimeout:    cmp.Or(f.ReadTimeout, ours.ReadTimeout),
		SendTimeout:    cmp.Or(f.SendTimeout, ours.SendTimeout),
		Tries:          cmp.Or(f.Tries, ours.Tries),
		TriesTimeout:   cmp.Or(f.TriesTimeout, ours.TriesTimeout),
		Next:           cmp.Or(f.Next, ours.Next),
		Gather:         f.Gather,
		HTTP10:         f.HTTP10,
	}
}

// mayTryAgain reports whether there are tries and time left.
func (t *transaction) mayTryAgain() bool {
	return t.try < t.rules.Tries && (t.rules.TriesTimeout == 0 || time.Since(t.began) < t.rules.TriesTimeout)
}

// mayRepeat reports whether err allows the request to be sent to another
// endpoint.
func (t *transaction) mayRepeat(err error) bool {
	var last *final
	var f *failure
	if t.rules.Next&exchange.NextOff != 0 || errors.As(err, &last) || !errors.As(err, &f) {
		return false
	}
	switch f.reason {
	case connectFailed, connectTimeout, tlsFailed, passedOn:
		return true
	case readTimeout:
		return t.rules.Next&exchange.NextTimeout != 0 && t.repeatable()
	case badResponse:
		return f.again || t.rules.Next&exchange.NextInvalid != 0 && t.repeatable()
	}
	return f.again
}

// raced reports whether err is the fault of an endpoint that has left the set
// since it was chosen. The pod was on its way out, so this is no try: it should
// never have been asked.
func (t *transaction) raced(err error) bool {
	var f *failure
	if !errors.As(err, &f) || f.endpoint == nil {
		return false
	}
	// The set is exchanged before those that are not in it any more hear of it.
	return f.endpoint.present().Err() != nil || !slices.Contains(t.backend.state.Load().endpoints, f.endpoint)
}

// ofKept reports whether a connection died that had been kept. As in nginx that is no try.
func ofKept(err error) bool {
	var f *failure
	return errors.As(err, &f) && f.kept
}

// avoid keeps the endpoint that failed out of the tries to come.
func (t *transaction) avoid(err error) {
	var f *failure
	if !errors.As(err, &f) {
		return
	}
	switch f.reason {
	case badResponse:
		if !f.again { // a pod that does not speak HTTP/2 has failed to connect
			t.health().Broke(time.Now())
		}
		t.tried = append(t.tried, t.at)
	case readTimeout, passedOn:
		t.tried = append(t.tried, t.at)
	}
}

// repeatable reports whether the request may be sent once more though an
// endpoint may have read it. A body that has been streamed is gone. One that is
// still there goes with what is idempotent where the route gathers bodies, and else
// only where the route asks for it.
func (t *transaction) repeatable() bool {
	if t.streaming && t.kept == nil {
		return false
	}
	return t.rules.Next&exchange.NextNonIdempotent != 0 ||
		(t.ex.Request.Body == nil || t.rules.Gather) && isIdempotent(t.ex.Request.Method)
}

// outlives reports whether a request that an endpoint may have read goes to another where the
// connection died.
func (t *transaction) outlives() bool { return t.rules.Next&exchange.NextError != 0 && t.repeatable() }

// rewind makes ready for one more try: what was on its way to the last is stopped.
func (t *transaction) rewind() {
	if t.upload != nil {
		t.upload.stop()
		t.upload = nil
	}
	if t.kept != nil {
		t.kept.Rewind()
	}
}

// passesOn reports whether an answer of this status is kept from the client
// because another endpoint may do better. It is not if there is no other: an
// answer is better than none.
func (t *transaction) passesOn(status int) bool {
	if !t.rules.Next.OnStatus(status) || !t.repeatable() || !t.mayTryAgain() || len(t.tried)+1 >= len(t.targets.endpoints) {
		return false
	}
	t.ex.Response.Header = exchange.Header{}
	return true
}

func isIdempotent(method []byte) bool {
	switch string(method) {
	case "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE":
		return true
	}
	return false
}

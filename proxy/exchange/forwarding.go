package exchange

import "time"

// Forwarding is how a route has its requests forwarded. Whatever is zero is the
// engine's own choice. It is immutable.
type Forwarding struct {
	// ConnectTimeout bounds the making of one connection. ReadTimeout and
	// SendTimeout bound the time between two reads or writes, not the whole.
	ConnectTimeout, ReadTimeout, SendTimeout time.Duration
	// Tries is how many endpoints one request may ask in vain.
	Tries int
	// TriesTimeout is how long after its first try a request may begin another.
	TriesTimeout time.Duration
	// Next is after which answers another endpoint is asked.
	Next Next
	// Gather has the body read before an endpoint is asked, so that it can be sent to
	// a second one. GatherMemory is how many bytes of it are kept in memory; what is
	// longer goes to a file.
	Gather       bool
	GatherMemory int64
	// HTTP10 asks endpoints over HTTP/1.0, which knows neither chunked bodies nor
	// upgrades, and nothing of the connection is kept. Those of HTTP/2 it does not
	// concern.
	HTTP10 bool
	// Rate bounds the bytes of a response that go to the client in a second, once
	// RateAfter have. Endpoints have no part in it.
	Rate, RateAfter int64
}

// Next is a set of reasons to ask another endpoint: proxy_next_upstream of nginx.
// That connecting failed, or that a connection died with nothing sent, is always
// one unless the set is NextOff; a body that was not gathered is never sent to a
// second endpoint. Zero is NextError alone.
type Next uint16

// The reasons. They, NextError among them, which is that the connection died before the head of
// an answer was whole, hold for idempotent methods, or with NextNonIdempotent for all.
const (
	NextError Next = 1 << iota
	NextTimeout
	NextInvalid
	Next403
	Next404
	Next429
	Next500
	Next502
	Next503
	Next504
	NextNonIdempotent
	NextOff
)

// OnStatus reports whether an answer with this status is a reason.
func (n Next) OnStatus(status int) bool {
	switch status {
	case 403:
		return n&Next403 != 0
	case 404:
		return n&Next404 != 0
	case 429:
		return n&Next429 != 0
	case 500:
		return n&Next500 != 0
	case 502:
		return n&Next502 != 0
	case 503:
		return n&Next503 != 0
	case 504:
		return n&Next504 != 0
	}
	return false
}

package upstream

import (
	"errors"

	"quayside.io/proxy/exchange"
)

// What a pod sends beyond its response belongs to no request: the body of an answer to HEAD,
// or a second answer. On a connection that is used again it would be taken for the answer to
// somebody else. One that has been idle for longer than quietFor is looked at first. One that
// is quiet is not, and then what had come shows by being read together with the answer:
// there is more than a response, or none at all. So neither is believed, and the request is
// sent again over a connection of its own. What comes in the very moment in which the
// request leaves nobody can tell from its answer.

// errLeftover says that something else was read together with a response.
var errLeftover = errors.New("what was read on a connection that had been idle is more than one response")

// trusts decides whether a kept connection may carry the request without a look at it: if
// it was quiet just now, and the request will be sent again if need be.
func (t *transaction) trusts(c *conn) bool {
	return c.quiet && !t.streaming && t.repeatable() && t.mayTryAgain() && t.rules.Next&exchange.NextOff == 0
}

// garbled is err, which says that what was read is no response.
func (t *transaction) garbled(err error) error {
	if t.conn.quiet {
		return t.astray(err)
	}
	return t.bad(err)
}

// astray says that what was read on a connection that was not looked at is no answer to this
// request, or not only, and that the request may be sent again.
func (t *transaction) astray(err error) error {
	r := &t.ex.Response
	r.Header, r.Body, r.Length, r.Trailer, t.body = exchange.Header{}, nil, 0, exchange.Trailer{}, body{}
	return &failure{reason: connectionLost, err: err, endpoint: t.targets.endpoints[t.at], again: true}
}

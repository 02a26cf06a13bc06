package filter

import (
	"strconv"

	"quayside.io/proxy/exchange"
)

// Question is a request of our own, which goes beside those of clients.
type Question struct {
	Method string
	// URL is absolute. Host, if not empty, is sent as the Host field instead of its
	// host.
	URL, Host string
	Header    []Header
	Body      []byte
}

// Answer is what came back of a Question: all but the body. It is not changed.
type Answer struct {
	Status int
	Header []Header
}

// all returns the values of a field.
func (a *Answer) all(name string) (values []string) {
	for _, h := range a.Header {
		if sameName(h.Name, name) {
			values = append(values, h.Value)
		}
	}
	return values
}

// field returns the first value of a field, without what may not stand in one. Of no answer
// there is none.
func (a *Answer) field(name string) []byte {
	if a == nil {
		return nil
	}
	for _, h := range a.Header {
		if sameName(h.Name, name) {
			return appendClean(nil, []byte(h.Value))
		}
	}
	return nil
}

// status is that of an answer as text. Of no answer there is none.
func (a *Answer) status() []byte {
	if a == nil {
		return nil
	}
	return strconv.AppendInt(nil, int64(a.Status), 10)
}

// sameName reports whether two names are those of one field.
func sameName(a, b string) bool { return exchange.EqualFold([]byte(a), b) }

// Asker sends Questions, for filters that need to know what others think. It
// follows no redirect.
type Asker interface {
	// Ask waits for the answer. It gives up in bounded time.
	Ask(q *Question) (*Answer, error)
	// Send does not wait, and nobody learns what comes back. Where too much is
	// under way q is dropped, which is counted.
	Send(q *Question)
	// Drop counts what could not be made whole to be sent.
	Drop()
}

// nobody is an Asker that reaches no one.
type nobody struct{}

func (nobody) Ask(*Question) (*Answer, error) { return nil, errNobody }
func (nobody) Send(*Question)                 {}
func (nobody) Drop()                          {}

const errNobody = noAsker("there is nobody to ask")

type noAsker string

func (e noAsker) Error() string { return string(e) }

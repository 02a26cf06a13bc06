package filter

import (
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"quayside.io/proxy/exchange"
)

// Mirror has copies of requests sent elsewhere. Nobody waits for them or learns
// what comes back.
type Mirror struct {
	To *Address
	// Host is the Host field of the copies; nil: the host of To.
	Host *Template
	// Headers are fields of the copies in the place of those of the request. One whose value
	// is empty is not sent.
	Headers []Field
	// NoBody leaves the bodies out.
	NoBody bool
}

// host is the Host of the copy of a request; empty: that of its address.
func (o *Mirror) host(ex *exchange.Exchange, at *Place) string {
	if o.Host == nil {
		return ""
	}
	if host := o.Host.appendField(nil, ex, at); isHost(host) {
		return string(host)
	}
	return ""
}

// fields are those of the copy of a request.
func (o *Mirror) fields(ex *exchange.Exchange, at *Place) (list []Header) {
	for _, f := range ex.Request.Header.Fields() {
		if !slices.ContainsFunc(o.Headers, func(own Field) bool { return sameName(string(f.Name), own.Name) }) {
			list = append(list, Header{string(f.Name), string(appendClean(nil, f.Value))})
		}
	}
	for _, own := range o.Headers {
		if value := own.Value.appendField(nil, ex, at); len(value) > 0 {
			list = append(list, Header{own.Name, string(value)})
		}
	}
	return list
}

// maxMirrored is the largest body that is copied; a request with a larger one has no
// copy.
const maxMirrored = 1 << 20

// Memory bounds what copies of bodies hold that are not complete yet.
type Memory struct {
	limit int64
	held  atomic.Int64
}

// newMemory returns a Memory of limit bytes.
func newMemory(limit int64) *Memory { return &Memory{limit: limit} }

func (m *Memory) take(n int) bool {
	if m.held.Add(int64(n)) <= m.limit {
		return true
	}
	m.give(n)
	return false
}

func (m *Memory) give(n int) { m.held.Add(-int64(n)) }

// mirror makes the copy when the request passes, before anything rewrites it. A
// body that is in memory goes with it at once; any other is copied as it is read.
func mirror(o *Mirror, tools Tools) Filter {
	place := tools.Place
	return Filter{
		Request: func(ex *exchange.Exchange) bool {
			r := &ex.Request
			q := &Question{Method: string(r.Method), URL: string(o.To.appendURL(nil, ex, &place)), Host: o.host(ex, &place)}
			q.Header = o.fields(ex, &place)
			if r.Body == nil || o.NoBody {
				tools.Asker.Send(q)
				return true
			}
			if w, ok := r.Body.(exchange.Whole); ok {
				if b, whole := w.Whole(); whole {
					q.Body = append(q.Body, b...)
					tools.Asker.Send(q)
					return true
				}
			}
			r.Body = &copied{ReadCloser: r.Body, length: r.Length, question: q, asker: tools.Asker, memory: tools.Memory}
			return true
		},
		Finished: func(ex *exchange.Exchange) {
			if c, ok := ex.Request.Body.(*copied); ok {
				c.end(false)
			}
		},
	}
}

// copied is a body that is copied while somebody reads it. It may be closed, and
// the request end, while a Read is under way.
type copied struct {
	io.ReadCloser
	asker  Asker
	memory *Memory
	length int64 // -1: unknown

	mu       sync.Mutex
	question *Question // nil: it is sent or dropped
}

// Read implements io.Reader.
func (c *copied) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	switch whole, ok := c.add(p[:n]); {
	case !ok, err != nil && err != io.EOF:
		c.end(false)
	case whole || err == io.EOF:
		c.end(true)
	}
	return n, err
}

// add reports whether the copy has become whole, and whether it may go on. Who
// knows the length need not read until the end is told.
func (c *copied) add(b []byte) (whole, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.question
	if q == nil {
		return false, true
	}
	if len(q.Body)+len(b) > maxMirrored || !c.memory.take(len(b)) {
		return false, false
	}
	q.Body = append(q.Body, b...)
	return int64(len(q.Body)) == c.length, true
}

// end sends the copy, or drops it if it is not whole.
func (c *copied) end(whole bool) {
	c.mu.Lock()
	q := c.question
	c.question = nil
	c.mu.Unlock()
	if q == nil {
		return
	}
	c.memory.give(len(q.Body))
	if whole {
		c.asker.Send(q)
	} else {
		c.asker.Drop()
	}
}

package upstream

import (
	"errors"
	"io"
	"math/rand/v2"
	"time"

	"quayside.io/proxy/balance"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/streams"
)

const (
	// bufferSize is one read from an upstream. Together with the head it holds
	// most responses, which then need no streaming.
	bufferSize = 32 << 10
	// smallBody is the largest request body that travels in one write with its
	// head, if it is in memory.
	smallBody = 8 << 10
	// maxInformational bounds the 1xx responses before the one that counts.
	maxInformational = 8
)

// transaction is one exchange being forwarded. Its life is: acquire, run, then
// its part as the response's body until Close. It is pooled with its memory.
type transaction struct {
	engine  *Engine
	backend *Backend
	ex      *exchange.Exchange

	rules   exchange.Forwarding // how: the route's, filled up with ours
	began   time.Time           // the first try
	try     int                 // counts from 1
	targets *targets
	session balance.Session // where the request belongs
	tried   []int           // indexes of targets that are not to be asked again
	at      int             // index of the target being asked
	counted *balance.Health // of that target, while its load includes this request
	out     []byte
	conn    *conn
	stream  *streams.Stream // instead of conn, where endpoints speak HTTP/2
	over    *conn           // what stream runs over, with others
	timer   *time.Timer     // of waits for it

	streaming bool              // the request has a body that is not in memory
	inline    []byte            // the body that is, where it is not part of out
	upload    *upload           // nil unless that body is on its way
	kept      exchange.Rewinder // that body, where it was gathered
	rewinds   *rewinder         // and where it was not, what of it has been read
	retired   []*upload         // of streams that were given up; they may still wait for it

	buf     *[]byte
	space   func() []byte // the method value of room
	start   int           // [start:end) of buf has been read, not yet consumed
	end     int
	chosen  time.Time     // when the endpoint being asked was
	linked  time.Duration // how long it took to connect to it
	said    int           // the status that it answered, if it did
	since   time.Time     // when the upstream was last heard of, or the connection chosen
	keep    bool          // the connection may serve another request
	framing framing
	body    body
}

func newTransaction(e *Engine) *transaction {
	t := &transaction{engine: e, out: make([]byte, 0, 4<<10)}
	t.space = t.room
	return t
}

func (e *Engine) acquire(b *Backend, ex *exchange.Exchange) *transaction {
	t, _ := e.transactions.Get().(*transaction)
	t.backend, t.ex = b, ex
	t.rules = e.rules
	if f := ex.Request.Forwarding; f != nil {
		t.rules = fill(*f, e.rules)
	}
	return t
}

// release gives everything back. What is borrowed from t is invalid from here on.
func (t *transaction) release() {
	if t.stream != nil {
		t.closeStream()
	}
	t.endUploads()
	if t.conn != nil {
		t.conn.endpoint.discard(t.conn)
	}
	t.uncount()
	t.freeBuffer()
	e, space, timer, tried, out := t.engine, t.space, t.timer, t.tried[:0], t.out[:0]
	if cap(out) > bufferSize {
		out = make([]byte, 0, 4<<10)
	}
	*t = transaction{} // in place
	t.engine, t.space, t.timer, t.tried, t.out = e, space, timer, tried, out
	e.transactions.Put(t)
}

// room returns the free part of the buffer, which it fetches at first.
func (t *transaction) room() []byte {
	if t.buf == nil {
		t.buf, _ = t.engine.buffers.Get().(*[]byte)
	}
	return (*t.buf)[t.end:]
}

func (t *transaction) freeBuffer() {
	if t.buf != nil && len(*t.buf) == bufferSize {
		t.engine.buffers.Put(t.buf)
	}
	t.buf = nil
}

// run sends the request until a response head has come, or it may not be sent
// once more.
func (t *transaction) run() error {
	ask := t.ask
	if t.backend.of.HTTP2 {
		ask = t.askStream
		t.inline = t.inMemory()
	} else {
		t.compose()
	}
	return t.repeat(ask)
}

// repeat asks one endpoint after another, until one has answered or no other may be
// asked. ask is told why there was a try before, or nil.
func (t *transaction) repeat(ask func(last error) error) error {
	t.ex.Upstream.Name = t.backend.name
	var last error
	for raced := 0; ; {
		t.try++
		err := ask(last)
		if err == nil {
			t.answered()
			return nil
		}
		t.uncount()
		t.avoid(err)
		t.failed(err)
		last = err
		if raced < maxRaces && t.raced(err) {
			raced++
			t.try--
			last = nil // it says nothing about those that are left, or that there are none
		} else if ofKept(err) {
			t.try-- // the next connection is a fresh one
		}
		if !t.mayTryAgain() || !t.mayRepeat(err) {
			return err
		}
		t.rewind()
		t.backend.stats.retries.Add(1)
	}
}

// ask asks one endpoint over a connection of its own. last is why there was a try
// before, or nil.
func (t *transaction) ask(last error) error {
	c, err := t.connect(last)
	if err != nil {
		return err
	}
	t.conn = c
	if err = t.attempt(); err != nil && t.conn != nil {
		t.conn.endpoint.discard(t.conn)
		t.conn = nil
	}
	return err
}

// connect chooses an endpoint and takes an idle connection to it or makes one.
// After a reused connection has died it makes one, for the others may be as
// dead.
func (t *transaction) connect(last error) (*conn, error) {
	if err := t.choose(last); err != nil {
		return nil, err
	}
	if last == nil {
		if c := t.targets.endpoints[t.at].take(t.chosen, t.engine.keeping.Load()); c != nil {
			t.since = t.chosen
			return c, nil
		}
	}
	c, err := t.dial()
	t.linked = time.Since(t.chosen)
	return c, err
}

// choose sets t.at to the endpoint that is asked next.
func (t *transaction) choose(last error) error {
	now := time.Now()
	if t.chosen, t.linked, t.said = now, 0, 0; t.began.IsZero() {
		t.began = now
	}
	if current := t.backend.state.Load(); current != t.targets {
		t.targets, t.tried = current, t.tried[:0]
		if !current.set.InTurn() {
			t.session = current.set.Session(&t.ex.Request, rand.Uint64())
		}
	}
	set, picker := t.targets.set, &t.backend.picker
	for {
		i := picker.Pick(set, now, &t.session, t.tried)
		switch {
		case i == balance.Full:
			return &failure{reason: overloaded}
		case i < 0 && last != nil:
			return &final{last}
		case i < 0:
			return &failure{reason: noEndpoint, detail: set.Why}
		}
		t.at = i
		if !set.Counts() {
			return nil
		}
		if picker.Begin(set, i) {
			t.counted = set.Endpoints[i].Health
			return nil
		}
		// Somebody was quicker, and the endpoint is full now.
	}
}

// uncount ends what choose has begun.
func (t *transaction) uncount() {
	if t.counted != nil {
		t.backend.picker.End(t.counted)
		t.counted = nil
	}
}

// health is that of the endpoint being asked.
func (t *transaction) health() *balance.Health { return t.targets.set.Endpoints[t.at].Health }

// attempt sends the request on t.conn and reads the response head.
func (t *transaction) attempt() error {
	for {
		err := t.send()
		if !errors.Is(err, errStale) {
			if err != nil {
				return err
			}
			break
		}
		// The pod has seen nothing. That it closed an idle connection says nothing
		// about the pod, so this is no try: another connection is used.
		if err := t.replace(); err != nil {
			return err
		}
	}
	return t.readHead()
}

// replace exchanges a stale connection for another to the same endpoint.
func (t *transaction) replace() (err error) {
	e, o := t.conn.endpoint, t.engine.keeping.Load()
	e.discard(t.conn)
	t.since = time.Now()
	if t.conn = e.take(t.since, o); t.conn == nil {
		t.conn, err = t.dial()
	}
	return err
}

// send writes the request and, if it is all sent, waits for the first bytes of
// the response. The rest of a streamed body goes its own way meanwhile.
func (t *transaction) send() error {
	c := t.conn
	reused := c.kept
	t.start, t.end = 0, 0
	if err := c.expectBy(t.since, t.rules.ReadTimeout); err != nil {
		return t.broken(err, reused, false)
	}
	in := t.space
	c.quiet = t.trusts(c)
	if t.streaming {
		in = nil
	}
	c.patient = t.rules.SendTimeout
	n, err := c.ask(t.out, in)
	switch {
	case err == errStale:
		return err
	case err == errPartial:
		if err := t.writeRest(t.out[n:]); err != nil {
			return t.broken(err, reused, c.wrote)
		}
	case err != nil && (!c.wrote || t.streaming || err == errUnsent):
		return t.broken(err, reused, c.wrote)
	}
	if t.streaming {
		t.upload = t.startUpload()
	}
	if t.streaming || err == errPartial {
		n, err = c.resume(t.space)
	}
	return t.arrived(n, err, reused)
}

// arrived takes the result of a read into t.space, and reads on while it is
// only our patience that ran out.
func (t *transaction) arrived(n int, err error, reused bool) error {
	for err != nil && isTimeout(err) {
		if err := t.unsent(t.conn.endpoint); err != nil {
			return err
		}
		if err := t.stillWaiting(); err != nil {
			return err
		}
		if err := t.cutOff(t.conn); err != nil {
			return err
		}
		n, err = t.conn.resume(t.space)
	}
	if err != nil {
		if err == io.EOF && t.unheard() {
			return errStale
		}
		return t.broken(err, reused, true)
	}
	now := time.Now()
	if t.end == 0 && t.counted != nil {
		t.counted.Observe(now, now.Sub(t.since))
	}
	t.end += n
	t.since = now
	return nil
}

// unheard reports whether the pod was just closing the connection, which had been idle,
// when this request was sent: it may be sent once more.
func (t *transaction) unheard() bool {
	if t.end > 0 || !t.conn.kept || !t.conn.unheard(len(t.out), t.streaming) {
		return false
	}
	if t.kept != nil {
		t.rewind()
		return true
	}
	return t.upload == nil || t.retire()
}

// stillWaiting is asked each time our patience runs out: may we go on?
func (t *transaction) stillWaiting() error {
	if p := t.ex.Request.Peer; p != nil && p.Gone() {
		return &failure{reason: clientGone}
	}
	now := time.Now()
	if t.upload != nil {
		if at, busy := t.upload.progress(); busy {
			return t.patience(now, t.rules.ReadTimeout)
		} else if at.After(t.since) {
			t.since = at
		}
	}
	left := t.rules.ReadTimeout - now.Sub(t.since)
	if left <= 0 {
		return &failure{reason: readTimeout, endpoint: t.conn.endpoint}
	}
	return t.patience(now, left)
}

func (t *transaction) patience(now time.Time, d time.Duration) error {
	if err := t.conn.expectBy(now, d); err != nil {
		return t.broken(err, false, true)
	}
	return nil
}

// broken says what it means that the connection failed before the head of the
// response was whole. sent tells whether the upstream may have read the request.
func (t *transaction) broken(err error, reused, sent bool) error {
	if u := t.upload; u != nil && u.clientFailed.Load() {
		u.stop()
		return &failure{reason: clientBody, err: u.err}
	}
	f := &failure{reason: connectionLost, err: err, endpoint: t.conn.endpoint, kept: reused && t.end == 0}
	switch {
	case isTimeout(err):
		f.reason, f.kept = sendTimeout, false
	case t.upload != nil && t.kept == nil:
	case !sent:
		f.again = true
	default:
		f.again = t.outlives()
	}
	if !reused || t.end > 0 {
		// A fresh connection that fails says something about the pod, which may be
		// on its way out with the connection in its backlog, and so does half a head.
		t.tried = append(t.tried, t.at)
		if t.upload == nil && f.reason == connectionLost {
			t.health().Broke(time.Now())
		}
	}
	return f
}

// more reads further bytes of the response head.
func (t *transaction) more() error {
	n, err := t.conn.resume(t.space)
	return t.arrived(n, err, false)
}

// readHead parses the response head. Hints before it go to who can be told.
func (t *transaction) readHead() error {
	h := &t.ex.Response.Header
	for informational := 0; ; {
		hd, size, err := parseHead((*t.buf)[t.start:t.end], h)
		switch {
		case err == errIncomplete:
			if err = t.makeRoom(); err == nil {
				if err := t.more(); err != nil {
					return err
				}
				continue
			}
			fallthrough
		case err != nil:
			return t.garbled(err)
		}
		t.start += size
		if hd.status >= 200 || hd.status == 101 {
			t.said = hd.status
			if hd.status >= 400 && t.passesOn(hd.status) {
				return &failure{reason: passedOn, endpoint: t.conn.endpoint}
			}
			return t.settle(hd)
		}
		if hd.status == statusEarlyHints {
			t.inform(h)
		}
		*h = exchange.Header{}
		if informational++; informational > maxInformational {
			return t.bad(errors.New("too many informational responses"))
		}
	}
}

// statusEarlyHints is the one informational response that is passed on (RFC 8297).
// Continue is each hop's own, and others mean nothing to anybody.
const statusEarlyHints = 103

// inform passes hints on to clients that can be told: those of HTTP/2. Many of
// HTTP/1.1 take them for the response, which is why nginx spares them, too.
func (t *transaction) inform(h *exchange.Header) {
	if peer, ok := t.ex.Request.Peer.(exchange.Informer); ok && h.Hints() {
		peer.Inform(statusEarlyHints, h)
	}
}

func (t *transaction) bad(err error) error {
	return &failure{reason: badResponse, err: err, endpoint: t.conn.endpoint}
}

// makeRoom sees to it that the head can grow, up to its limit.
func (t *transaction) makeRoom() error {
	if t.end < len(*t.buf) {
		return nil
	}
	limit := t.engine.options.MaxHead
	if t.end-t.start >= limit {
		return errHeadTooLong
	}
	larger := make([]byte, min(limit, max(4*(t.end-t.start), bufferSize))+1)
	t.end = copy(larger, (*t.buf)[t.start:t.end])
	t.start = 0
	t.freeBuffer()
	t.buf = &larger
	return nil
}

// writeRest writes what the socket would not take at once.
func (t *transaction) writeRest(b []byte) error {
	c := t.conn
	if err := c.SetWriteDeadline(time.Now().Add(t.rules.SendTimeout)); err != nil {
		return err
	}
	n, err := c.Write(b)
	c.wrote = c.wrote || n > 0
	return err
}

var _ io.ReadCloser = (*transaction)(nil)

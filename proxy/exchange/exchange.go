package exchange

import (
	"io"
	"net/netip"
	"time"
)

// Exchange is one request and its response.
type Exchange struct {
	Request  Request
	Response Response
	// Upstream is what became of asking endpoints, for logs and metrics.
	Upstream Upstream

	// Observer is set by the handler. The front end tells it when all is over.
	Observer Observer
	// Passed is the handler's own note of how far the request has come, and Next what
	// goes on from there; nil: it has to begin.
	Passed int
	Next   Handler
	// Scratch is memory that filters may use for what they put into the request.
	Scratch []byte
	// Aside are fields that a filter keeps for the response, whoever will make it,
	// while the request passes.
	Aside Header
	// Counted are what the exchange is counted under while it is under way, by options and by
	// snippets; 0: it is not.
	Counted [2]uint64
	// Inspection is what a firewall has begun to look at; nil: nobody looks.
	Inspection Inspection
	// Script is what scripts of the route have made of it.
	Script Scripted
	// Span is what the exchange is called in a trace. A filter sets it.
	Span Span
}

// Observer is told of exchanges that have ended.
type Observer interface {
	// Finished is called once for each exchange, when the last byte of the response
	// has been written, or broken says that it could not be. The exchange is still
	// whole; its bodies are closed.
	Finished(ex *Exchange, broken bool)
}

// Handler answers exchanges: what every front end calls once per request.
type Handler interface {
	// Handle fills ex.Response. It returns before the body has been read, which
	// the front end does, and closes. An exchange whose response has a status
	// already was refused by the front end, and is only counted.
	Handle(ex *Exchange)
}

// Admitter is what a Handler may be as well: it can tell of a request whether it
// will be refused before its body is asked for (Expect: 100-continue).
type Admitter interface {
	// Admit reports whether the body is wanted, which must not be read yet. If not,
	// ex.Response is filled and all is over. If so, Handle goes on from there.
	Admit(ex *Exchange) bool
}

// Request is the client's side.
type Request struct {
	Method []byte
	// Protocol is the client's, as a status line has it: "HTTP/1.1". Empty: unknown.
	Protocol string
	// Asked is what the client sent as Host and Target, whatever filters have made of
	// them. The handler sets it. Authorization is nil until a filter keeps that field
	// from the upstream; see [Request.Authorization]. Proto is the X-Forwarded-Proto that
	// came, whether or not whoever sent it is believed.
	Asked struct{ Host, Target, Authorization, Proto []byte }
	// Host is what the upstream is sent: the Host header or :authority as the client sent
	// it, with its port, until a trusted proxy's X-Forwarded-Host or a filter replaces it.
	Host []byte
	// Target is the request target in origin form ("/a/b?c=d"), as received.
	// It is what the upstream is sent; a rewrite replaces it.
	Target []byte
	// Path is the path of Target normalised for matching: percent-decoded save
	// for %2F, without dot segments or doubled slashes. It holds no query.
	Path []byte
	// Routed is the Path that the route was found by. The handler sets it, again where a
	// script moves the request to another route.
	Routed []byte
	// Header are the end-to-end fields in the order received. Hop-by-hop
	// fields (RFC 9110 7.6.1) and Host are not among them.
	Header Header
	// Body is nil where there is none. Length is its size in bytes, -1 if
	// unknown (chunked); reading may block on the client. A body in memory is
	// Whole. Close ends all reading and wakes a Read that waits; who reads to the
	// end need not call it.
	Body   io.ReadCloser
	Length int64
	// Trailer is what the client sends behind Body.
	Trailer Trailer
	// TakesTrailers says that the client asked for the trailer of the response
	// ("TE: trailers").
	TakesTrailers bool
	// Upgrade is the protocol of an Upgrade request ("websocket"), or nil.
	Upgrade []byte
	// UpgradeKey is the Sec-WebSocket-Key of an Upgrade to WebSocket whose client has
	// none of its own, since it came over HTTP/2 (RFC 8441). Whoever forwards sends it,
	// sees that the answer fits, and takes no other success for one.
	UpgradeKey []byte
	// Client is the address the request comes from. Front ends set that of the
	// connection, after PROXY protocol; the handler follows trusted X-Forwarded-For
	// from there. TLS says that the client's side was encrypted; a trusted proxy's
	// X-Forwarded-Proto counts.
	Client netip.AddrPort
	TLS    bool
	// Port is the one that the client connected to, as text, where a PROXY header tells;
	// empty: nobody does.
	Port []byte
	// Handshake is what the client showed when TLS began that ends here; nil: none
	// does.
	Handshake *Handshake
	// Certificate is what a filter knows of the client's; nil: the route asks for none.
	Certificate *Certificate
	// Names is what stands in the names of the fields that the client sent.
	Names Spelling
	// Received is when the head had arrived. Zero: it never did in full.
	Received time.Time
	// Size is how many bytes of head and body have come, as far as the front end can
	// tell: framing and compression aside. It is set when the exchange has ended.
	Size int64
	// Random is drawn by the handler for each request: filters and routes have no
	// randomness of their own.
	Random [2]uint64
	// Forwarding is what the route says about the upstream; nil: nothing.
	Forwarding *Forwarding
	// HashKey is what the route has the endpoint chosen by; nil: it says nothing, or names
	// parts of the request.
	HashKey []byte
	// CookiePath is where a session cookie made for it holds that says nothing of that
	// itself; empty: on the whole host.
	CookiePath string
	// Peer is the client's connection, asked while an upstream keeps it
	// waiting. It is nil where the front end cannot ask.
	Peer Peer
}

// AskedHost is the Host that came, whatever has been put in its place.
func (r *Request) AskedHost() []byte { return firstOf(r.Asked.Host, r.Host) }

// BestHost is what ingress-nginx calls $best_http_host: the host that a trusted proxy has named,
// if any, once a filter has put X-Forwarded-Host in order, or else AskedHost.
func (r *Request) BestHost() []byte {
	if host := r.Header.Get("X-Forwarded-Host"); len(host) > 0 {
		return host
	}
	return r.AskedHost()
}

// RoutedPath is the Path that the route was found by, whatever filters have made of it.
func (r *Request) RoutedPath() []byte { return firstOf(r.Routed, r.Path) }

// AskedTarget is the target that the client sent, whatever filters have made of it.
func (r *Request) AskedTarget() []byte { return firstOf(r.Asked.Target, r.Target) }

// firstOf is what the client sent, or what there is where nobody has noted that.
func firstOf(asked, now []byte) []byte {
	if asked == nil {
		return now
	}
	return asked
}

// Authorization is what the client sent in the field of that name, though a filter
// may have kept it from the upstream.
func (r *Request) Authorization() []byte {
	if r.Asked.Authorization != nil {
		return r.Asked.Authorization
	}
	return r.Header.Get("Authorization")
}

// Peer is the connection that a request came by.
type Peer interface {
	// Gone reports that the client has hung up, so that nobody will read the
	// response. It does not block; true is final.
	Gone() bool
}

// Response is what the client is sent.
type Response struct {
	Status int
	// Header are the end-to-end fields; framing fields are the front end's.
	Header Header
	// Body is nil where there is none; the front end closes it. Length is its
	// size in bytes, -1 if unknown.
	Body   io.ReadCloser
	Length int64
	// Trailer is what comes behind Body.
	Trailer Trailer
	// Sent is how many bytes of the body the front end has written, or handed to be
	// written.
	Sent int64
	// Ended is when the Observer was told of it. Zero: it has not looked at the clock.
	Ended time.Time
	// Text is a short body held in memory; it stands in for Body where Body is nil.
	Text []byte
	// Fault is the status of what is wrong where the proxy itself says so, in its own words,
	// in whose place others may say something: 0 where somebody else has spoken. It may be
	// one that only nginx has, such as 496 for a client without a certificate.
	Fault int
	// Unnamed says that the front end adds no Server field.
	Unnamed bool
	// Close says that the client's connection cannot serve another request,
	// since part of this request's body was left unread.
	Close bool
	// Reset is set where the upstream reset its stream instead of answering, and the
	// response is what we say of that.
	Reset *StreamReset
	// Upgraded is set with status 101: the front end hands the client's raw
	// connection over to it, once, after the header has been written. A client may be
	// a socket.Reader, which is waited for without a buffer.
	Upgraded func(client io.ReadWriteCloser)
}

// StatusClientGone is the status of an exchange whose client hung up before it
// was answered, as in nginx. It is counted and logged; nobody is sent it.
const StatusClientGone = 499

// Reset makes e ready for the next request; the memory of headers is kept.
func (e *Exchange) Reset() {
	e.Observer, e.Passed, e.Next, e.Scratch, e.Aside, e.Counted, e.Inspection = nil, 0, nil, e.Scratch[:0], e.Aside.reset(), [2]uint64{}, nil
	e.Span, e.Script = Span{}, Scripted{Values: e.Script.Values[:0]}
	e.Upstream = Upstream{Tries: e.Upstream.Tries[:0]}
	q, r := &e.Request, &e.Response
	h, t := q.Header.reset(), q.Trailer.reset()
	*q = Request{} // by itself it is cleared in place, with more it would be made elsewhere and copied
	q.Header, q.Trailer = h, t
	h, t = r.Header.reset(), r.Trailer.reset()
	text := r.Text[:0]
	*r = Response{}
	r.Header, r.Trailer, r.Text = h, t, text
}

// Answer makes the response a short plain text of our own: what the proxy says
// when there is no upstream to speak.
func (e *Exchange) Answer(status int, text string) {
	e.Response.Status = status
	e.Response.Header = e.Response.Header.reset()
	e.Response.Trailer = e.Response.Trailer.reset()
	e.Response.Header.Add("Content-Type", "text/plain; charset=utf-8")
	e.Response.Text = append(e.Response.Text[:0], text...)
	e.Response.Length = int64(len(e.Response.Text))
	e.Response.Body, e.Response.Reset = nil, nil
	e.Response.Fault = 0
	if status >= 400 {
		e.Response.Fault = status
	}
}

// Whole is what a body may implement that is already in memory: head and body
// are then written at once, without streaming.
type Whole interface {
	// Whole returns the whole body and true, or what has come of it so far and
	// false. The bytes are valid until the body is read or closed.
	Whole() ([]byte, bool)
}

// Rewinder is what a request's body may implement that can be read more than once.
type Rewinder interface {
	// Rewind has the next Read begin with the first byte again. It reports false, and
	// does nothing, where part of the body has still to come. Nobody may be reading.
	Rewind() bool
}

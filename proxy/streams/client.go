package streams

import (
	"cmp"
	"errors"
	"net"
	"sync"
	"time"

	"quayside.io/proxy/frame"
)

// Options are what a Client is made with. Zero values mean the defaults.
type Options struct {
	// HeadSize is the largest head or trailer of a response, counted as RFC 9113
	// section 6.5.2 does: names, values and 32 bytes per field. 256 KiB.
	HeadSize int
	// Streams is how many requests one connection carries at once, if the pod lets
	// it; 256.
	Streams int
	// WriteTimeout bounds one write to a connection; 60 s.
	WriteTimeout time.Duration
}

// Client makes connections. It holds what they share.
type Client struct {
	options Options
	buffers frame.Buffers
	streams sync.Pool
}

// New returns a Client.
func New(o Options) *Client {
	o.HeadSize = cmp.Or(o.HeadSize, 256<<10)
	o.Streams = cmp.Or(o.Streams, 256)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, time.Minute)
	cl := &Client{options: o}
	cl.streams.New = func() any { return newStream() }
	return cl
}

var (
	// ErrFull says that a connection carries as many requests as it may.
	ErrFull = errors.New("the connection carries as many requests as it may")
	// ErrClosing says that a connection takes no more requests.
	ErrClosing = errors.New("the connection is closing")
	// ErrUnseen says that the pod has not looked at the request, and will not: it
	// may be sent again, whatever it is.
	ErrUnseen = errors.New("the connection ended before the request was looked at")
	// ErrLost says that the connection ended in the middle.
	ErrLost = errors.New("the connection was lost")
	// ErrMalformed is wrapped by what a pod says that no response may.
	ErrMalformed = errors.New("the response is malformed")
	// ErrSilent says that the pod did not let us send for too long.
	ErrSilent = errors.New("the pod grants no window")
)

// Start begins to speak HTTP/2 on nc, which it owns from now on. The caller waits
// for Ready. Over TLS, secure says so.
func (cl *Client) Start(nc net.Conn, secure bool) *Conn {
	c := newConn(cl, nc, secure)
	go c.serve()
	return c
}

package exchange

import (
	"crypto/x509"
	"strings"
	"sync/atomic"
)

// Handshake is what a client showed of itself when the TLS of its connection
// began. It belongs to the connection, and the requests on it share it.
type Handshake struct {
	// ServerName is the name that the client asked for, in lower case and without a
	// dot behind it; empty: it asked for none.
	ServerName string
	// Chain are the certificates that the client showed, its own first, of which it
	// has the key. Nobody has verified them. Empty: it showed none.
	Chain []*x509.Certificate
	// Version is that of TLS, and Cipher the suite, see CipherName; 0: it is not known.
	Version, Cipher uint16

	memos atomic.Pointer[memo]
}

// Certificate is what is known of a client's certificate where the route asks for one, in
// nginx's words.
type Certificate struct {
	Verify          string // SUCCESS, NONE, or FAILED: and why
	Subject, Issuer string // distinguished names (RFC 4514)
	Escaped         string // all of it, where the route asks for that
}

// memo is what somebody thinks of a Handshake.
type memo struct {
	by, what any
	older    *memo
}

// memosKept are as many as the requests of one connection usually need; whoever
// finds its own gone works it out again.
const memosKept = 4

// NewHandshake returns what a client showed that asked for a server name.
func NewHandshake(serverName string, chain []*x509.Certificate) *Handshake {
	return &Handshake{ServerName: strings.ToLower(strings.TrimSuffix(serverName, ".")), Chain: chain}
}

// Recall returns what was remembered by somebody last, or nil.
func (h *Handshake) Recall(by any) any {
	for m := h.memos.Load(); m != nil; m = m.older {
		if m.by == by {
			return m.what
		}
	}
	return nil
}

// Remember keeps what somebody worked out, until a few others have done so too.
func (h *Handshake) Remember(by, what any) {
	h.memos.Store(&memo{by, what, h.memos.Load().without(by, memosKept-1)})
}

// without returns the first n of a list that are not by somebody.
func (m *memo) without(by any, n int) *memo {
	switch {
	case m == nil || n == 0:
		return nil
	case m.by == by:
		return m.older.without(by, n)
	}
	return &memo{m.by, m.what, m.older.without(by, n-1)}
}

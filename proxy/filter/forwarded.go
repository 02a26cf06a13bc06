package filter

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"slices"

	"quayside.io/proxy/exchange"
)

// Connection is what a front end knows about the client's connection.
type Connection struct {
	Peer netip.Addr // where the connection comes from, after PROXY protocol
	TLS  bool
	Port []byte // that the client connected to, as text
}

// Forwarded sets the X-Forwarded-* fields as ingress-nginx does by default: those
// that a client sent are replaced, unless the peer is itself a trusted proxy,
// whose fields are continued. It is immutable; each front end has one.
type Forwarded struct {
	trusted []netip.Prefix
	field   string // that names the client; empty: X-Forwarded-For
	noID    bool   // no X-Request-ID is made
	keeps   bool   // the Host
	texts   *forwardedTexts
}

// forwardedTexts are what Apply adds that does not depend on the request: each exchange borrows
// them, since to copy them costs as much as all the rest.
type forwardedTexts struct {
	realIP, forwardedFor, originalFor, originalHost []byte
	host, port, proto, scheme, xScheme, id          []byte
	http, https, port443, comma                     []byte
}

func newForwardedTexts() *forwardedTexts {
	return &forwardedTexts{
		realIP: []byte("X-Real-IP"), forwardedFor: []byte("X-Forwarded-For"),
		originalFor: []byte("X-Original-Forwarded-For"), originalHost: []byte("X-Original-Forwarded-Host"),
		host: []byte("X-Forwarded-Host"), port: []byte("X-Forwarded-Port"), proto: []byte("X-Forwarded-Proto"),
		scheme: []byte("X-Forwarded-Scheme"), xScheme: []byte("X-Scheme"), id: []byte("X-Request-ID"),
		http: []byte("http"), https: []byte("https"), port443: []byte("443"), comma: []byte(", "),
	}
}

// NewForwarded returns a Forwarded that believes the proxies in trusted.
func NewForwarded(trusted []netip.Prefix) *Forwarded {
	return &Forwarded{trusted: slices.Clone(trusted), texts: newForwardedTexts()}
}

// With returns f with what o adds, which may be nil.
func (f *Forwarded) With(o *Front) *Forwarded {
	if o == nil || len(o.Trusted) == 0 && o.ForwardedFor == "" && !o.NoRequestID && !o.KeepHost {
		return f
	}
	return &Forwarded{slices.Concat(f.trusted, o.Trusted), o.ForwardedFor, o.NoRequestID, o.KeepHost, f.texts}
}

// Trusts reports whether a is the address of a trusted proxy.
func (f *Forwarded) Trusts(a netip.Addr) bool { return isIn(f.trusted, a) }

// trail is what the request says about its own way here.
type trail struct {
	chain, host, port, proto, id []byte
	chains                       int
}

// Apply sets X-Real-IP, X-Forwarded-For, -Host, -Port, -Proto and -Scheme,
// X-Scheme and X-Request-ID in ex, X-Original-Forwarded-For and -Host to what it was
// told by whomever, and ex.Request.Client and TLS. As in ingress-nginx, the upstream is
// asked for the host that a trusted proxy has been asked for, and who came to that by
// plain HTTP has no TLS, however the proxy came here. Two random numbers name the
// request if it has no usable name of its own.
func (f *Forwarded) Apply(ex *exchange.Exchange, c Connection, random [2]uint64) {
	r, names := &ex.Request, f.texts
	client, trusted := c.Peer, len(f.trusted) > 0 && f.Trusts(c.Peer)
	var named []byte
	if f.field != "" {
		named = list(&r.Header, f.field) // before it is taken out: it may be X-Real-IP
	}
	said := f.take(&r.Header, trusted)
	if f.field != "" {
		said.chain = named
	}
	var text [46]byte
	peer := r.Header.Copy(c.Peer.AppendTo(text[:0]))
	port, host, proto, chain := c.Port, r.Host, names.http, peer
	if c.TLS {
		proto = names.https
	}
	if trusted {
		client = f.client(said.chain, c.Peer)
		if len(said.chain) > 0 {
			chain = r.Header.Copy(said.chain, names.comma, peer)
		}
		if h := first(said.host); len(h) > 0 && exchange.ValidHost(h) {
			if host = h; !f.keeps {
				r.Host = h
			}
		}
		if p := first(said.proto); exchange.EqualFold(p, "https") || exchange.EqualFold(p, "http") {
			proto = p
		}
		if string(port) == "80" && exchange.EqualFold(proto, "https") {
			port = names.port443 // that of the connection is not what the client asked
		}
		port = or(first(said.port), port)
	}
	r.Header.AddBorrowed(names.forwardedFor, chain)
	if client != c.Peer {
		peer = r.Header.Copy(client.AppendTo(text[:0]))
	}
	r.Client = netip.AddrPortFrom(client, 0)
	r.TLS = exchange.EqualFold(proto, "https")
	r.Asked.Proto = said.proto
	r.Header.AddBorrowed(names.realIP, peer)
	if len(said.chain) > 0 {
		r.Header.AddBorrowed(names.originalFor, said.chain)
	}
	if len(said.host) > 0 {
		r.Header.AddBorrowed(names.originalHost, said.host)
	}
	r.Header.AddBorrowed(names.host, host)
	r.Header.AddBorrowed(names.port, port)
	r.Header.AddBorrowed(names.proto, proto)
	r.Header.AddBorrowed(names.scheme, proto)
	r.Header.AddBorrowed(names.xScheme, proto)
	if len(said.id) == 0 {
		if f.noID {
			return
		}
		said.id = r.Header.Copy(appendID(text[:0], random))
	}
	r.Header.AddBorrowed(names.id, said.id)
}

// first returns the first of a list with commas: what the proxy said that saw the
// client, where there are several in a row.
func first(list []byte) []byte {
	one, _, _ := bytes.Cut(list, []byte{','})
	return exchange.TrimSpace(one)
}

func or(a, b []byte) []byte {
	if len(a) > 0 {
		return a
	}
	return b
}

// take removes the fields that Apply sets, and what imitates them, and returns
// what they said. A backend that maps header names to variables cannot tell
// X_Real_IP from X-Real-IP, so underscores count as dashes. "Proxy" goes too: to
// such a backend it is HTTP_PROXY. What Apply does not set but frameworks believe
// just as much (Forwarded of RFC 7239, X-Forwarded-Prefix, ssl-client-verify, ...)
// stays only if the peer is trusted.
func (f *Forwarded) take(h *exchange.Header, trusted bool) trail {
	var said trail
	for _, field := range h.Fields() {
		switch which(field.Name) {
		case forwardedFor:
			said.chain = field.Value
			said.chains++
		case forwardedHost:
			said.host = or(said.host, field.Value)
		case forwardedPort:
			said.port = or(said.port, field.Value)
		case forwardedProto:
			said.proto = or(said.proto, field.Value)
		case requestID:
			if isID(field.Value) {
				said.id = field.Value
			}
		}
	}
	if said.chains > 1 {
		said.chain = joined(h, said.chains)
	}
	h.Keep(func(field exchange.Field) bool {
		is := which(field.Name)
		return is == none || is == unverified && trusted
	})
	return said
}

// joined returns several X-Forwarded-For fields as one list, as RFC 9110 reads
// them. It is rare enough to allocate.
func joined(h *exchange.Header, n int) []byte {
	list := make([][]byte, 0, n)
	for _, field := range h.Fields() {
		if which(field.Name) == forwardedFor {
			list = append(list, field.Value)
		}
	}
	return bytes.Join(list, []byte(", "))
}

// client returns the right-most address of chain that is no trusted proxy: the
// last one that somebody we trust has seen. What stands left of it anybody may
// have written. An element that is no address ends the search.
func (f *Forwarded) client(chain []byte, peer netip.Addr) netip.Addr {
	at := peer
	for len(chain) > 0 {
		i := bytes.LastIndexByte(chain, ',')
		a, ok := parseAddr(bytes.TrimSpace(chain[i+1:]))
		if !ok {
			return at
		}
		if at = a; !f.Trusts(a) {
			return at
		}
		chain = chain[:max(i, 0)]
	}
	return at
}

// parseAddr reads an address with or without port or brackets.
func parseAddr(b []byte) (netip.Addr, bool) {
	s := string(b)
	if a, err := netip.ParseAddr(s); err == nil {
		return a.Unmap().WithZone(""), true
	}
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.Addr().Unmap().WithZone(""), true
	}
	if len(s) > 2 && s[0] == '[' && s[len(s)-1] == ']' {
		if a, err := netip.ParseAddr(s[1 : len(s)-1]); err == nil {
			return a.Unmap().WithZone(""), true
		}
	}
	return netip.Addr{}, false
}

// isID reports whether a request's own name may be passed on: it ends up in
// logs, so it is short and plain.
func isID(b []byte) bool {
	if len(b) == 0 || len(b) > 128 {
		return false
	}
	for _, c := range b {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '-' || c == '_' || c == '.' || c == '=' || c == '+' || c == '/' || c == ':':
		default:
			return false
		}
	}
	return true
}

// appendID appends 32 hexadecimal digits.
func appendID(dst []byte, random [2]uint64) []byte {
	var id [16]byte
	binary.BigEndian.PutUint64(id[:8], random[0])
	binary.BigEndian.PutUint64(id[8:], random[1])
	return hex.AppendEncode(dst, id[:])
}

type field uint8

const (
	none field = iota
	forwardedFor
	forwardedHost
	forwardedPort
	forwardedProto
	requestID
	other      // set or refused, its value of no interest
	unverified // about the way here, not ours to set
)

// which identifies the fields that Apply sets, by length first because most
// fields are not among them.
func which(name []byte) field {
	var canonical string
	var found field
	switch len(name) {
	case 5:
		canonical, found = "proxy", other
	case 8:
		canonical, found = "x-scheme", other
	case 9:
		if name[0]|0x20 == 'x' {
			canonical, found = "x-real-ip", other
		} else {
			canonical, found = "forwarded", unverified
		}
	case 12:
		canonical, found = "x-request-id", requestID
	case 15:
		canonical, found = "x-forwarded-for", forwardedFor
	case 16:
		if name[12]|0x20 == 'h' {
			canonical, found = "x-forwarded-host", forwardedHost
		} else {
			canonical, found = "x-forwarded-port", forwardedPort
		}
	case 17:
		canonical, found = "x-forwarded-proto", forwardedProto
	case 18:
		canonical, found = "x-forwarded-scheme", other
	case 24:
		canonical, found = "x-original-forwarded-for", other
	case 25:
		canonical, found = "x-original-forwarded-host", other
	}
	if found != none && begins(name, canonical) {
		return found
	}
	if begins(name, "x-forwarded-") || begins(name, clientPrefix) {
		return unverified
	}
	return none
}

// begins reports whether name begins with canonical, in any case and with
// underscores for dashes.
func begins(name []byte, canonical string) bool {
	if len(name) < len(canonical) {
		return false
	}
	for i := range len(canonical) {
		if variableByte(name[i]) != canonical[i] {
			return false
		}
	}
	return true
}

// variableByte is a letter of a field's name in lower case, with a dash for an
// underscore: equal for names that are one variable to CGI.
func variableByte(c byte) byte {
	switch {
	case 'A' <= c && c <= 'Z':
		return c | 0x20
	case c == '_':
		return '-'
	}
	return c
}

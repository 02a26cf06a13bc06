package filter

import (
	"bytes"
	"net/netip"
	"strings"

	"quayside.io/proxy/exchange"
)

// RealIP takes who the client is from a field, as nginx's real_ip_header does: for one route, where
// Front.Trusted is about all of them.
type RealIP struct {
	// Field names the client. X-Forwarded-For is the one that came.
	Field string
	// From are those whose field is believed.
	From []netip.Prefix
	// Recursive passes over those of a list who are believed themselves, and takes the last
	// that is not. Else it is the last.
	Recursive bool
}

// apply replaces the client, and what the backend is told of it. It allocates where it does.
func (i *RealIP) apply(ex *exchange.Exchange) {
	r := &ex.Request
	client, ok := i.client(r.Client.Addr(), i.said(&r.Header))
	if !ok {
		return
	}
	r.Client = netip.AddrPortFrom(client, 0)
	text := client.String()
	r.Header.Set("X-Real-IP", text)
	r.Header.Set("X-Forwarded-For", text)
}

// said is what the field says. Of X-Forwarded-For Forwarded has kept what came.
func (i *RealIP) said(h *exchange.Header) []byte {
	if strings.EqualFold(i.Field, "X-Forwarded-For") {
		return h.Get("X-Original-Forwarded-For")
	}
	return h.Get(i.Field)
}

// client is who peer says that the client is, if it is believed.
func (i *RealIP) client(peer netip.Addr, list []byte) (client netip.Addr, ok bool) {
	for isIn(i.From, peer) {
		list = bytes.TrimRight(list, ", \t")
		at := bytes.LastIndexAny(list, ", \t")
		next, valid := parseAddr(list[at+1:])
		if !valid {
			return client, ok
		}
		client, ok = next, true
		if !i.Recursive || at < 0 {
			return client, true
		}
		peer, list = next, list[:at]
	}
	return client, ok
}

// filter has it done before whatever comes behind.
func (i *RealIP) filter() Filter {
	return Filter{Request: func(ex *exchange.Exchange) bool {
		i.apply(ex)
		return true
	}}
}

// around has f, which guards, look at a request that is another route's as at one of this route's.
func (i *RealIP) around(f Filter) Filter {
	if i == nil {
		return f
	}
	inner := f.Request
	f.Request = func(ex *exchange.Exchange) bool {
		was := ex.Request.Client
		if client, ok := i.client(was.Addr(), i.said(&ex.Request.Header)); ok {
			ex.Request.Client = netip.AddrPortFrom(client, 0)
		}
		passes := inner(ex)
		ex.Request.Client = was
		return passes
	}
	return f
}

// NamesClient reports whether a field still is what came when filters look at it, so that it may be
// a RealIP's.
func NamesClient(field string) bool {
	of := which([]byte(field))
	return exchange.IsToken([]byte(field)) && field != "" && (of == none || of == forwardedFor)
}

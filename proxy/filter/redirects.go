package filter

import (
	"cmp"
	"strings"

	"quayside.io/proxy/exchange"
)

// sendTo answers with a redirect to the concatenation of parts.
func sendTo(ex *exchange.Exchange, status int, parts ...[]byte) {
	ex.Answer(status, "The document has moved\n")
	ex.Response.Header.AddParts("Location", parts...)
}

func redirect(r *Redirect, at Place) Filter {
	to := r.To.filler(at)
	return Filter{Request: func(ex *exchange.Exchange) bool {
		sendTo(ex, r.Code, to(ex))
		return false
	}}
}

// appRoot sends "/" elsewhere. The query is dropped, as nginx's return does.
func appRoot(root *Target, at Place) Filter {
	http, https, path := []byte("http://"), []byte("https://"), root.filler(at)
	return Filter{Request: func(ex *exchange.Exchange) bool {
		r := &ex.Request
		if string(r.Path) != "/" {
			return true
		}
		scheme := http
		if r.TLS {
			scheme = https
		}
		sendTo(ex, 302, scheme, r.Host, path(ex))
		return false
	}}
}

// canonicalHost sends requests to the same target of another host. A port that the
// client wrote stays.
func canonicalHost(name string, code int) Filter {
	http, https, colon, host := []byte("http://"), []byte("https://"), []byte(":"), clean(name)
	code = cmp.Or(code, 308)
	return Filter{Request: func(ex *exchange.Exchange) bool {
		r := &ex.Request
		scheme, sep := http, colon
		if r.TLS {
			scheme = https
		}
		_, port := exchange.SplitHost(r.Host)
		if len(port) == 0 {
			sep = nil
		}
		sendTo(ex, code, scheme, host, sep, port, r.AskedTarget())
		return false
	}}
}

// addSlash sends a request for a path without the slash at its end to the path. The query stays, as
// where nginx finds a location so.
func addSlash(path string) Filter {
	without, to, question := strings.TrimSuffix(path, "/"), appendAddress(nil, []byte(path)), []byte{'?'}
	return Filter{Request: func(ex *exchange.Exchange) bool {
		if string(ex.Request.Path) != without {
			return true
		}
		if query := exchange.Query(ex.Request.Target); len(query) > 0 {
			sendTo(ex, 301, to, question, query)
		} else {
			sendTo(ex, 301, to)
		}
		return false
	}}
}

// clean returns s without control characters: with them, a value of an annotation
// could end its field and begin another.
func clean(s string) []byte {
	b := make([]byte, 0, len(s))
	for i := range len(s) {
		if s[i] >= ' ' && s[i] != 0x7f || s[i] == '\t' {
			b = append(b, s[i])
		}
	}
	return b
}

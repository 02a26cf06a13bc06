package filter

import (
	"io"
	"slices"
	"strings"

	"quayside.io/proxy/exchange"
)

// maxBody refuses bodies of more than limit bytes: at once where the length is
// said, else as soon as they have grown too long.
func maxBody(limit int64) Filter {
	return Filter{Request: func(ex *exchange.Exchange) bool {
		r := &ex.Request
		switch {
		case r.Body == nil:
		case r.Length > limit:
			ex.Answer(413, "413 Content Too Large: the request's body is larger than the limit\n")
			return false
		case r.Length < 0:
			r.Body = &bounded{r.Body, limit}
		}
		return true
	}}
}

// bounded is a body of unknown length.
type bounded struct {
	io.ReadCloser
	left int64
}

// Read implements io.Reader. One byte more than is left may be read, to tell a body
// that just fits from one that does not.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, exchange.ErrBodyTooLarge
	}
	if int64(len(p))-1 > b.left {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, exchange.ErrBodyTooLarge
	}
	return n, err
}

// noUpgrade leaves the client its HTTP (RFC 9110 section 7.8 lets anybody ignore
// Upgrade).
func noUpgrade() Filter {
	return Filter{Request: func(ex *exchange.Exchange) bool {
		ex.Request.Upgrade = nil
		return true
	}}
}

// upstreamHost replaces what the upstream is sent as Host. X-Forwarded-Host keeps
// what the client wrote.
func upstreamHost(name *Template, at Place) Filter {
	fill := name.filler(at, appendClean, appendClean)
	return Filter{Request: func(ex *exchange.Exchange) bool {
		host := fill(ex)
		if !isHost(host) { // groups of a path may be anything
			ex.Answer(400, "400 Bad Request: the path cannot be made a host\n")
			return false
		}
		if len(host) > 0 {
			ex.Request.Host = host
		}
		return true
	}}
}

func forwardedPrefix(value *Template, at Place) Filter {
	prefix := value.filler(at, appendClean, appendClean)
	return Filter{Request: func(ex *exchange.Exchange) bool {
		setOnly(&ex.Request.Header, "X-Forwarded-Prefix", prefix(ex))
		return true
	}}
}

// requestHeaders sets fields that the upstream is sent.
func requestHeaders(list []Field, place Place) Filter {
	return Filter{Request: func(ex *exchange.Exchange) bool {
		for _, f := range list {
			if f.There && ex.Request.Header.Get(f.Name) == nil {
				continue
			}
			setOnly(&ex.Request.Header, f.Name, f.Value.appendField(nil, ex, &place))
		}
		return true
	}}
}

// hashKey notes what the endpoint is chosen by.
func hashKey(key *Template, at Place) Filter {
	return Filter{Request: func(ex *exchange.Exchange) bool {
		ex.Request.HashKey = key.append(nil, ex, &at, appendAsIs, appendAsIs)
		return true
	}}
}

// setOnly makes value all that h says by a name, and by what imitates it; an empty
// value is not said at all.
func setOnly(h *exchange.Header, name string, value []byte) {
	h.Keep(func(f exchange.Field) bool { return !imitates(f.Name, name) })
	if len(value) > 0 {
		h.SetBytes(name, value)
	}
}

// IsFraming reports whether a field says where a message ends or whose it is, which is ours to
// say.
func IsFraming(name string) bool {
	return slices.Contains([]string{
		"connection", "content-length", "host", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
	}, strings.ToLower(name))
}

// imitates reports whether a backend that maps the names of fields to variables, as
// CGI does, takes a field for the one called of: X_User is X-User to it.
func imitates(name []byte, of string) bool {
	if len(name) != len(of) {
		return false
	}
	for i := range name {
		if variableByte(name[i]) != variableByte(of[i]) {
			return false
		}
	}
	return true
}

// dropNames takes fields out whose names have any of what is given.
func dropNames(drop exchange.Spelling) Filter {
	return Filter{Request: func(ex *exchange.Exchange) bool {
		if ex.Request.Names&drop != 0 {
			ex.Request.Header.Keep(func(f exchange.Field) bool { return exchange.SpellingOf(f.Name)&drop == 0 })
		}
		return true
	}}
}

// headers sets fields in every response, whoever made it. One without a value is taken out.
func headers(list []Field, at Place) Filter {
	type field struct {
		name    string
		server  bool
		overTLS bool
		value   func(*exchange.Exchange) []byte
	}
	var fields []field
	for _, f := range list {
		if f.Name != "" && exchange.IsToken([]byte(f.Name)) {
			fields = append(fields, field{f.Name, strings.EqualFold(f.Name, "Server"), strings.EqualFold(f.Name, strictTransport), f.Value.filler(at, appendClean, appendClean)})
		}
	}
	return Filter{Response: func(ex *exchange.Exchange) {
		for i := range fields {
			if fields[i].overTLS && !ex.Request.TLS {
				continue
			}
			if value := fields[i].value(ex); len(value) > 0 {
				ex.Response.Header.SetBytes(fields[i].name, value)
			} else {
				ex.Response.Header.Del(fields[i].name)
				ex.Response.Unnamed = ex.Response.Unnamed || fields[i].server
			}
		}
	}}
}

// onSuccess leaves f out of responses with other statuses than those to which nginx's
// add_header adds unless it says always.
func onSuccess(f Filter) Filter {
	return Filter{Response: func(ex *exchange.Exchange) {
		if succeeds(ex.Response.Status) {
			f.Response(ex)
		}
	}}
}

// succeeds reports whether a status is one to which nginx's add_header adds fields unasked.
func succeeds(status int) bool {
	switch status {
	case 200, 201, 204, 206, 301, 302, 303, 304, 307, 308:
		return true
	}
	return false
}

// strictTransport is the field that may be sent over TLS only (RFC 6797 section 7.2).
const strictTransport = "Strict-Transport-Security"

// hsts tells browsers to come by TLS only, in every response over TLS, whoever
// made it (RFC 6797).
func hsts(value string) Filter {
	return Filter{Response: func(ex *exchange.Exchange) {
		if ex.Request.TLS {
			ex.Response.Header.Set(strictTransport, value)
		}
	}}
}

// hideHeaders keeps fields of the upstream's response from the client.
func hideHeaders(names []string) Filter {
	return Filter{Upstream: func(ex *exchange.Exchange) {
		for _, name := range names {
			ex.Response.Header.Del(name)
		}
	}}
}

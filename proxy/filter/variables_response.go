package filter

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"quayside.io/proxy/exchange"
)

// ParseOfResponse is ParseTemplate of a field of responses, of which more is known: nginx's
// $upstream_addr, $request_time and so on.
func (n *Names) ParseOfResponse(text string) (*Template, error) {
	return parseTemplate(text, func(name string) (part, bool) {
		if p, known := n.grouped(name); known {
			return p, true
		}
		lower := strings.ToLower(name)
		switch lower {
		case "request_time", "status", "upstream_addr", "upstream_status", "upstream_response_time", "upstream_header_time", "upstream_connect_time", "upstream_cache_status":
			return part{variable: "response", of: lower}, true
		}
		of, named := strings.CutPrefix(lower, answerPrefix)
		if !named {
			of, named = strings.CutPrefix(lower, "sent_http_")
		}
		return part{variable: "response", of: answerPrefix + strings.ReplaceAll(of, "_", "-")}, named && of != ""
	})
}

// responseValue is what a variable of ParseOfResponse stands for; nil: nothing.
func responseValue(of string, ex *exchange.Exchange) []byte {
	if name, isField := strings.CutPrefix(of, answerPrefix); isField {
		return ex.Response.Header.Get(name)
	}
	switch of {
	case "request_time":
		return exchange.AppendSeconds(nil, untilHead(ex))
	case "status":
		return strconv.AppendInt(nil, int64(ex.Response.Status), 10)
	case "upstream_cache_status": // nothing is kept here
		return nil
	}
	var b []byte
	for i := range ex.Upstream.Tries {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = appendTry(b, of, &ex.Upstream.Tries[i])
	}
	return b
}

// untilHead is how long it took until a backend's head was there; 0: none was asked.
func untilHead(ex *exchange.Exchange) time.Duration {
	u := &ex.Upstream
	if u.Began.IsZero() || len(u.Tries) == 0 {
		return 0
	}
	d := u.Began.Sub(ex.Request.Received) + u.Last().Header
	for _, failed := range u.Tries[:len(u.Tries)-1] {
		d += failed.Took
	}
	return d
}

// appendTry appends what a variable says of one endpoint that was asked.
func appendTry(b []byte, of string, try *exchange.Try) []byte {
	switch of {
	case "upstream_addr":
		return try.Endpoint.AppendTo(b)
	case "upstream_status":
		if status := cmp.Or(try.Status, try.Failed); status != 0 {
			return strconv.AppendInt(b, int64(status), 10)
		}
		return append(b, '-')
	case "upstream_response_time":
		return exchange.AppendSeconds(b, try.Took)
	case "upstream_header_time":
		return exchange.AppendSeconds(b, try.Header)
	case "upstream_connect_time":
		return exchange.AppendSeconds(b, try.Connect)
	}
	return b
}

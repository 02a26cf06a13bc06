package filter

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"quayside.io/proxy/exchange"
)

// ParseOfResponse is ParseTemplate of a field of responses, of which more is known: nginx's
// $upstream_addr, $request_time and so on. So it is of what a table is about, whose variable only
// fields of responses and the log may have then.
func (n *Names) ParseOfResponse(text string) (*Template, error) {
	return parseTemplate(text, n.later(n.grouped))
}

// ParseEntry is ParseOfResponse of a value of a table, with the groups of its pattern.
func (n *Names) ParseEntry(text string) (*Template, error) {
	return parseTemplate(text, n.later(n.variable))
}

// later knows what there is of a response beside what sooner knows.
func (n *Names) later(sooner func(name string) (part, bool)) func(name string) (part, bool) {
	return func(name string) (part, bool) {
		if p, known := sooner(name); known {
			return p, true
		}
		lower := strings.ToLower(name)
		if known := n.of[lower]; known != nil && known.late {
			return known.part(name), true
		}
		switch lower {
		case "request_time", "status", "body_bytes_sent", "request_length", "upstream_addr", "upstream_status", "upstream_response_time", "upstream_header_time",
			"upstream_connect_time", "upstream_response_length", "upstream_cache_status":
			return part{variable: "response", of: lower}, true
		}
		of, named := strings.CutPrefix(lower, answerPrefix)
		if !named {
			of, named = strings.CutPrefix(lower, "sent_http_")
		}
		return part{variable: "response", of: answerPrefix + strings.ReplaceAll(of, "_", "-")}, named && of != ""
	}
}

// isLate reports whether t is about a response.
func (t *Template) isLate(n *Names) bool {
	return slices.ContainsFunc(t.parts, func(p part) bool {
		return p.variable == "response" || p.variable == "table" && n.of[strings.ToLower(p.of)].late
	})
}

// responseValue is what a variable of later stands for; nil: nothing.
func responseValue(of string, ex *exchange.Exchange, at *Place) []byte {
	if name, isField := strings.CutPrefix(of, answerPrefix); isField {
		return ex.Response.Header.Get(name)
	}
	switch of {
	case "request_time":
		return exchange.AppendSeconds(nil, cmp.Or(at.Took, untilHead(ex)))
	case "status":
		return strconv.AppendInt(nil, int64(ex.Response.Status), 10)
	case "body_bytes_sent":
		return strconv.AppendInt(nil, ex.Response.Sent, 10)
	case "request_length":
		return strconv.AppendInt(nil, ex.Request.Size, 10)
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
	case "upstream_response_length":
		return strconv.AppendInt(b, try.Received, 10)
	}
	return b
}

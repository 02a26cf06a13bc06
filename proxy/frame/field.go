package frame

import "quayside.io/proxy/exchange"

// ValidName reports whether s may name a field: a token in lower case (RFC 9113
// section 8.2.1).
func ValidName(s string) bool {
	for i := range len(s) {
		if 'A' <= s[i] && s[i] <= 'Z' {
			return false
		}
	}
	return len(s) > 0 && exchange.IsToken([]byte(s))
}

// ValidValue reports whether s may be a field's value: no control character but the
// tab, and no white space around it.
func ValidValue(s string) bool {
	return exchange.IsFieldValue(s) && (s == "" || !isSpace(s[0]) && !isSpace(s[len(s)-1]))
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' }

// EndsHere reports whether a field speaks of a connection of HTTP/1.1 (RFC 9113
// section 8.2.2).
func EndsHere(name, value string) bool {
	switch name {
	case "connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade":
		return true
	case "te":
		return value != "trailers"
	}
	return false
}

// ParseLength reads a Content-Length: digits only, and not so many that they
// overflow.
func ParseLength(s string) (int64, bool) {
	if len(s) == 0 || len(s) > 18 {
		return 0, false
	}
	var n int64
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int64(s[i]-'0')
	}
	return n, true
}

package frame

import "quayside.io/proxy/exchange"

// Our field blocks hold no Huffman codes and add nothing to the dynamic table: the
// fields of messages differ too much for that to pay, and an encoder without a
// memory leaks nothing of one message into the length of another.

// The representations of RFC 7541 section 6.
const (
	literal      = 0x00 // without indexing
	neverIndexed = 0x10
	added        = 0x40 // with incremental indexing
	indexed      = 0x80
	tableEmpty   = 0x20 // dynamic table size update to 0
	sizeMask     = 0xe0 // of a size update, to whatever size
)

// AppendStatus appends the field ":status".
func AppendStatus(b []byte, status int) []byte {
	switch status {
	case 200:
		return append(b, indexed|8)
	case 204:
		return append(b, indexed|9)
	case 206:
		return append(b, indexed|10)
	case 304:
		return append(b, indexed|11)
	case 400:
		return append(b, indexed|12)
	case 404:
		return append(b, indexed|13)
	case 500:
		return append(b, indexed|14)
	}
	return append(b, literal|8, 3, byte('0'+status/100%10), byte('0'+status/10%10), byte('0'+status%10))
}

// AppendRequest appends the pseudo fields of a request.
func AppendRequest(b, method, host, target []byte, secure bool) []byte {
	switch string(method) {
	case "GET":
		b = append(b, indexed|2)
	case "POST":
		b = append(b, indexed|3)
	default:
		b = appendText(append(b, literal|2), method)
	}
	scheme := byte(indexed | 6)
	if secure {
		scheme = indexed | 7
	}
	b = appendText(append(b, scheme, literal|4), target)
	return appendText(append(b, literal|1), host)
}

// AppendField appends a field; its name in lower case, as RFC 9113 section 8.2 has
// it. Cookies and credentials are marked to be kept out of every table on their way.
func AppendField(b, name, value []byte) []byte {
	var buf [maxStaticName]byte
	kind, index := byte(literal), 0
	if len(name) <= maxStaticName {
		index = staticIndex(string(exchange.AppendLower(buf[:0], name)))
	}
	if index == setCookie || index == cookie || index == authorization {
		kind = neverIndexed
	}
	if index > 0 {
		b = appendInt(b, kind, 4, index)
	} else {
		b = appendInt(append(b, kind), 0, 7, len(name))
		b = exchange.AppendLower(b, name)
	}
	return appendText(b, value)
}

// appendText appends a string literal (RFC 7541 section 5.2).
func appendText(b, text []byte) []byte { return append(appendInt(b, 0, 7, len(text)), text...) }

// appendInt appends n with a prefix of so many bits below those of first (RFC 7541
// section 5.1).
func appendInt(b []byte, first byte, bits, n int) []byte {
	limit := 1<<bits - 1
	if n < limit {
		return append(b, first|byte(n))
	}
	b = append(b, first|byte(limit))
	for n -= limit; n >= 0x80; n >>= 7 {
		b = append(b, 0x80|byte(n))
	}
	return append(b, byte(n))
}

const (
	maxStaticName = len("access-control-allow-origin")
	authorization = 23
	cookie        = 32
	setCookie     = 55
)

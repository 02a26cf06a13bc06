package h2

import (
	"encoding/binary"

	"golang.org/x/net/http2"

	"quayside.io/proxy/exchange"
)

// Our field blocks hold no Huffman codes and add nothing to the dynamic table: the
// fields of responses differ too much for that to pay, and an encoder without a
// memory leaks nothing of one response into the length of another.

// The representations of RFC 7541 section 6.
const (
	literal      = 0x00 // without indexing
	neverIndexed = 0x10
	indexed      = 0x80
	tableEmpty   = 0x20 // dynamic table size update to 0
)

// appendStatus appends the field ":status".
func appendStatus(b []byte, status int) []byte {
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

// appendField appends a field; its name in lower case, as RFC 9113 section 8.2 has
// it. Cookies are marked to be kept out of every table on their way.
func appendField(b, name, value []byte) []byte {
	var buf [maxStaticName]byte
	kind, index := byte(literal), 0
	if len(name) <= maxStaticName {
		index = staticIndex(string(exchange.AppendLower(buf[:0], name)))
	}
	if index == setCookie {
		kind = neverIndexed
	}
	if index > 0 {
		b = appendInt(b, kind, 4, index)
	} else {
		b = appendInt(append(b, kind), 0, 7, len(name))
		b = exchange.AppendLower(b, name)
	}
	b = appendInt(b, 0, 7, len(value))
	return append(b, value...)
}

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
	setCookie     = 55
)

// staticIndex is where the static table (RFC 7541 appendix A) has a name that
// responses carry, or 0.
func staticIndex(name string) int {
	switch name {
	case "accept-ranges":
		return 18
	case "access-control-allow-origin":
		return 20
	case "age":
		return 21
	case "allow":
		return 22
	case "cache-control":
		return 24
	case "content-disposition":
		return 25
	case "content-encoding":
		return 26
	case "content-language":
		return 27
	case "content-length":
		return 28
	case "content-location":
		return 29
	case "content-range":
		return 30
	case "content-type":
		return 31
	case "date":
		return 33
	case "etag":
		return 34
	case "expires":
		return 36
	case "last-modified":
		return 44
	case "link":
		return 45
	case "location":
		return 46
	case "retry-after":
		return 53
	case "server":
		return 54
	case "set-cookie":
		return setCookie
	case "strict-transport-security":
		return 56
	case "vary":
		return 59
	case "via":
		return 60
	case "www-authenticate":
		return 61
	}
	return 0
}

// appendFrameHeader begins a frame (RFC 9113 section 4.1).
func appendFrameHeader(b []byte, length int, kind http2.FrameType, flags http2.Flags, id uint32) []byte {
	return append(b, byte(length>>16), byte(length>>8), byte(length), byte(kind), byte(flags), byte(id>>24), byte(id>>16), byte(id>>8), byte(id))
}

// appendBlock appends a field block as HEADERS and what CONTINUATION it needs.
func appendBlock(b, block []byte, id uint32, flags http2.Flags) []byte {
	for kind := http2.FrameHeaders; ; kind = http2.FrameContinuation {
		part := block[:min(len(block), frameSize)]
		block = block[len(part):]
		if len(block) == 0 {
			flags |= http2.FlagHeadersEndHeaders // the same bit in both
		}
		b = append(appendFrameHeader(b, len(part), kind, flags, id), part...)
		if len(block) == 0 {
			return b
		}
		flags = 0
	}
}

func appendSettings(b []byte, settings ...http2.Setting) []byte {
	b = appendFrameHeader(b, 6*len(settings), http2.FrameSettings, 0, 0)
	for _, s := range settings {
		b = append(b, byte(s.ID>>8), byte(s.ID))
		b = binary.BigEndian.AppendUint32(b, s.Val)
	}
	return b
}

func appendReset(b []byte, id uint32, code http2.ErrCode) []byte {
	return binary.BigEndian.AppendUint32(appendFrameHeader(b, 4, http2.FrameRSTStream, 0, id), uint32(code))
}

func appendWindowUpdate(b []byte, id, n uint32) []byte {
	return binary.BigEndian.AppendUint32(appendFrameHeader(b, 4, http2.FrameWindowUpdate, 0, id), n)
}

func appendGoAway(b []byte, last uint32, code http2.ErrCode, why string) []byte {
	b = appendFrameHeader(b, 8+len(why), http2.FrameGoAway, 0, 0)
	return append(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, last), uint32(code)), why...)
}

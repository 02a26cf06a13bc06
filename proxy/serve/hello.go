package serve

import (
	"strings"

	"golang.org/x/crypto/cryptobyte"
)

const (
	// maxHello is the most that is read of a client before it is known which name it
	// asks for. A ClientHello with keys against quantum computers has 2 KiB; one that
	// is longer than this is left to crypto/tls.
	maxHello = 16 << 10
	// usualHello is what there is room for at first.
	usualHello = 2 << 10

	recordHead      = 5
	typeHandshake   = 22
	typeClientHello = 1
	extServerName   = 0
)

// hello is the first message of a client as far as it has come, in as many TLS
// records as the client likes. Each byte is looked at once.
type hello struct {
	bytes   []byte // all of it, records and all
	record  int    // where in bytes the next record begins
	message []byte // what the records before carried
}

// advance looks at what has come. It reports the server name once the message is
// whole; done with an empty name says that there is none, or that this is no
// ClientHello, about which crypto/tls has the last word.
func (h *hello) advance() (serverName string, done bool) {
	for len(h.bytes) >= h.record+recordHead {
		head := h.bytes[h.record:]
		n := int(head[3])<<8 | int(head[4])
		if head[0] != typeHandshake || head[1] != 3 || n == 0 {
			return "", true
		}
		if len(head) < recordHead+n {
			break
		}
		h.message = append(h.message, head[recordHead:recordHead+n]...)
		h.record += recordHead + n
		if len(h.message) < 4 {
			continue
		}
		if h.message[0] != typeClientHello {
			return "", true
		}
		if size := int(h.message[1])<<16 | int(h.message[2])<<8 | int(h.message[3]); len(h.message) >= 4+size {
			return serverNameOf(h.message[4 : 4+size]), true
		}
	}
	return "", len(h.bytes) >= maxHello
}

// serverNameOf returns the name that the body of a ClientHello asks for (RFC 8446
// section 4.1.2, RFC 6066 section 3); empty: none, or the body is malformed.
func serverNameOf(body []byte) string {
	s := cryptobyte.String(body)
	var session, suites, compression, extensions cryptobyte.String
	if !s.Skip(2+32) || !s.ReadUint8LengthPrefixed(&session) || !s.ReadUint16LengthPrefixed(&suites) ||
		!s.ReadUint8LengthPrefixed(&compression) || !s.ReadUint16LengthPrefixed(&extensions) || !s.Empty() {
		return ""
	}
	name, seen := "", false
	for !extensions.Empty() {
		var kind uint16
		var data cryptobyte.String
		if !extensions.ReadUint16(&kind) || !extensions.ReadUint16LengthPrefixed(&data) {
			return ""
		}
		if kind != extServerName {
			continue
		}
		if seen {
			return ""
		}
		seen = true
		if name = hostNameOf(data); name == "" {
			return ""
		}
	}
	return name
}

// hostNameOf reads the extension server_name.
func hostNameOf(data cryptobyte.String) (name string) {
	var names cryptobyte.String
	if !data.ReadUint16LengthPrefixed(&names) || !data.Empty() {
		return ""
	}
	for !names.Empty() {
		var kind uint8
		var one cryptobyte.String
		if !names.ReadUint8(&kind) || !names.ReadUint16LengthPrefixed(&one) || one.Empty() {
			return ""
		}
		if kind != 0 {
			continue
		}
		if name != "" || strings.HasSuffix(string(one), ".") {
			return ""
		}
		name = string(one)
	}
	return name
}

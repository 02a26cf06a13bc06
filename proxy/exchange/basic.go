package exchange

import (
	"bytes"
	"encoding/base64"
)

// MaxCredentials is the longest user and password that is looked at.
const MaxCredentials = 512

// BasicCredentials appends "user:password" of an Authorization field (RFC 7617) to dst,
// which must have room for MaxCredentials.
func BasicCredentials(dst, field []byte) ([]byte, bool) {
	const scheme = "basic "
	if len(field) < len(scheme) || !EqualFold(field[:len(scheme)], scheme) {
		return nil, false
	}
	text := TrimSpace(field[len(scheme):])
	if base64.StdEncoding.DecodedLen(len(text)) > MaxCredentials {
		return nil, false
	}
	n, err := base64.StdEncoding.Decode(dst[len(dst):cap(dst)], text)
	return dst[:len(dst)+n], err == nil
}

// AppendUser appends the user of basic authentication, whoever that is for, whether true
// or not, and whether a guard has looked at it or not.
func (r *Request) AppendUser(dst []byte) []byte {
	var buf [MaxCredentials]byte
	credentials, ok := BasicCredentials(buf[:0], r.Authorization())
	if name, _, found := bytes.Cut(credentials, []byte{':'}); ok && found {
		dst = append(dst, name...)
	}
	return dst
}

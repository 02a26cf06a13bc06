package exchange

import (
	"bytes"
	"net/netip"
)

// SplitHost cuts the port off "name:port"; it is empty if there is none. A name
// in brackets keeps them.
func SplitHost(host []byte) (name, port []byte) {
	i := bytes.LastIndexByte(host, ':')
	if i < 0 || bytes.IndexByte(host[i:], ']') >= 0 {
		return host, nil
	}
	return host[:i], host[i+1:]
}

// HostName is the name in a host, without a port and the dot at the end of one that is fully
// qualified: nginx's $host, in the case that the client wrote.
func HostName(host []byte) []byte {
	name, _ := SplitHost(host)
	return bytes.TrimSuffix(name, []byte{'.'})
}

// ValidHost reports whether b may be a host with or without a port (RFC 3986
// section 3.2.2). An empty one is that of an HTTP/1.0 request.
func ValidHost(b []byte) bool {
	name, port := SplitHost(b)
	if len(b) > 0 && len(name) == 0 || len(name) < len(b) && len(port) == 0 {
		return false
	}
	for _, c := range port {
		if c < '0' || c > '9' {
			return false
		}
	}
	if len(name) > 0 && name[0] == '[' {
		return validLiteral(name)
	}
	for _, c := range name {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '.' || c == '-' || c == '_':
		default:
			return false
		}
	}
	return true
}

// validLiteral reports whether b is an IPv6 address in brackets, without a zone,
// which means nothing to anybody else.
func validLiteral(b []byte) bool {
	if len(b) < 2 || b[len(b)-1] != ']' {
		return false
	}
	a, err := netip.ParseAddr(string(b[1 : len(b)-1]))
	return err == nil && a.Is6() && a.Zone() == ""
}

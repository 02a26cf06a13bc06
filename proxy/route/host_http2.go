package route

import "fmt"

// claim is what is said of something that is either so or not.
type claim int8

const (
	unsaid claim = iota
	no
	yes
)

// parseHostHTTP2 reads http2.
func parseHostHTTP2(s *settings, value string) error {
	on, err := parseBool(value)
	if err != nil {
		return err
	}
	s.http2 = no
	if on {
		s.http2 = yes
	}
	return nil
}

// http2Of returns whether HTTP/2 is offered for a host: the oldest of its parts that says
// so decides.
func (b *hostBuilder) http2Of(parts []*part) claim {
	var first *part
	for _, c := range parts {
		switch {
		case c.unit.http2 == unsaid:
		case first == nil:
			first = c
		case c.unit.http2 != first.unit.http2:
			b.told(c, HTTP2Unused, fmt.Sprintf("http2 has no effect on host %s: %s %s, which comes first, says otherwise", c.host, first.unit.ref.Kind, first.unit.ref.Key))
		}
	}
	if first == nil {
		return unsaid
	}
	return first.unit.http2
}

// countHTTP2 is 1 for a host that says something of HTTP/2, 0 for any other, or none.
func (h *host) countHTTP2() int {
	if h != nil && h.http2 != unsaid {
		return 1
	}
	return 0
}

// HTTP2 reports whether HTTP/2 is offered to clients that ask for a server name, if any
// Ingress of the host says so; else it is as for all.
func (t *Table) HTTP2(serverName string) (offered, said bool) {
	if t.state.offering == 0 {
		return false, false
	}
	var buf [maxHost]byte
	name := appendHost(buf[:0], serverName)
	for rank := exactly; rank <= byWildcard; rank++ {
		if h := t.host(name, rank); h != nil {
			return h.http2 == yes, h.http2 != unsaid
		}
	}
	return false, false
}

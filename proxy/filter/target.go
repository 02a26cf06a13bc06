package filter

import (
	"errors"
	"fmt"
	"strings"

	"quayside.io/proxy/exchange"
)

// Target is where clients are sent: an address or a path, perhaps with variables. Nothing
// that a client sends decides which host that is, save for the host that it came by.
type Target struct {
	text *Template
	path bool
	told bool // the whole of it is a variable that is an address, or nothing that anybody is sent to
}

// ParseTarget reads one. It begins with a slash, with http:// or https://, or with $scheme://.
func ParseTarget(text string) (*Target, error) { return parseTarget(text, false) }

// ParseTarget reads one with groups of the condition's pattern. One that begins with a group
// or with the path is a path. Groups of the host that a client came by may stand in the host.
func (c *Condition) ParseTarget(text string) (*Target, error) {
	if begins, _, _ := strings.Cut(text, "://"); begins == text && strings.HasPrefix(text, "$") {
		text = "/" + text
	}
	ofHost := c.Of.variable == "host" || c.Of.variable == "http_host"
	return parseTarget(text, ofHost && c.Pattern != nil && !c.Not)
}

func parseTarget(text string, groupsOfHost bool) (*Target, error) {
	t, err := ParseTemplate(text)
	return targetOf(text, t, err, groupsOfHost)
}

func targetOf(text string, t *Template, err error, groupsOfHost bool) (*Target, error) {
	switch {
	case err != nil:
		return nil, err
	case len(text) > 4096:
		return nil, errors.New("it is longer than 4096 bytes")
	case t.Has(" $\"<>\\") || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return nil, fmt.Errorf("%q has a character that no address has", text)
	case strings.HasPrefix(text, "/"):
		return &Target{text: t, path: true}, nil
	case len(t.parts) == 1 && t.parts[0].variable == "": // the operator's own words
		if !strings.HasPrefix(text, "http://") && !strings.HasPrefix(text, "https://") {
			return nil, fmt.Errorf("%q is neither a path nor begins with http:// or https://", text)
		}
		return &Target{text: t}, nil
	}
	a := &Address{Template: t, groups: groupsOfHost, ports: true}
	return &Target{text: t}, a.check(text)
}

// IsPath reports whether it leads to the host that a client came by.
func (t *Target) IsPath() bool { return t.path }

// filler returns what fills t in.
func (t *Target) filler(at Place) func(*exchange.Exchange) []byte {
	fill := t.text.filler(at, appendClean, appendAddress)
	return func(ex *exchange.Exchange) []byte { return t.onHost(fill(ex)) }
}

// fill fills t in.
func (t *Target) fill(ex *exchange.Exchange, at *Place) []byte {
	if t.told {
		return t.text.append(nil, ex, at, appendClean, appendClean)
	}
	return t.onHost(t.text.append(nil, ex, at, appendClean, appendAddress))
}

// onHost returns what is filled in so that what follows the slash of a path is never a host,
// save in the operator's own words.
func (t *Target) onHost(b []byte) []byte {
	if t.path && len(t.text.parts) > 1 {
		return ofOneSlash(b)
	}
	return b
}

// ParseHost reads the text of a Host field, which may be made of the host that a client came
// by, of what the route is made of, and of groups of its path.
func ParseHost(text string) (*Template, error) {
	t, err := ParseTemplate(text)
	if err != nil {
		return nil, err
	}
	for _, p := range t.parts {
		switch p.variable {
		case "":
			if !isHost(p.literal) {
				return nil, fmt.Errorf("%q is not a host", text)
			}
		case "host", "http_host", "best_http_host", "server_name", "namespace", "ingress_name", "service_name", "service_port", "group":
		default:
			return nil, fmt.Errorf("%s may not stand in a host", p.name())
		}
	}
	if len(text) > maxHostText {
		return nil, fmt.Errorf("it is longer than %d bytes", maxHostText)
	}
	return t, nil
}

// maxHostText bounds a Host as it is written, in bytes: a name (RFC 1035 section 2.3.4) and a
// port, or variables in their place.
const maxHostText = 512

// isHost reports whether b has only characters of names, addresses and ports.
func isHost(b []byte) bool {
	for _, c := range b {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._:[]*", c) >= 0:
		default:
			return false
		}
	}
	return true
}

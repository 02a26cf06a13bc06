package filter

import (
	"errors"
	"fmt"
	"strings"
)

// Address is a URL with variables. Nothing that a client sends decides where it
// leads, save for the host that the client came by.
type Address struct {
	*Template
	// ByHost says that it leads to the host that the request names. That is only
	// safe on a route which not every host leads to.
	ByHost bool

	groups bool // are of the host, too
	ports  bool // that of the request may stand behind the host
}

// ParseAddress reads the URL of a service: http or https, a host, and perhaps
// variables. Those that may stand in the host are the ones for the request's own,
// and those for what the route is made of.
func ParseAddress(text string) (*Address, error) { return parseAddress(text, variable) }

// ParseSignin reads where clients are sent that an authentication service knows nobody by: a
// path, or the URL of a service. It may have fields of that service's answer,
// $upstream_http_NAME, though not in the host.
func ParseSignin(text string) (*Address, error) {
	if !strings.HasPrefix(text, "/") || strings.HasPrefix(text, "//") {
		return parseAddress(text, variableOfAnswer)
	}
	if _, err := parseAddress("http://here"+text, variableOfAnswer); err != nil {
		return nil, err
	}
	t, err := parseTemplate(text, variableOfAnswer)
	return &Address{Template: t}, err
}

func parseAddress(text string, known func(name string) (part, bool)) (*Address, error) {
	if strings.ContainsAny(text, " \"<>\\^`|#") || len(text) > 4096 || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r >= 0x7f }) {
		return nil, fmt.Errorf("%q has a character that no address has", text)
	}
	t, err := parseTemplate(text, known)
	if err != nil {
		return nil, err
	}
	a := &Address{Template: t}
	return a, a.check(text)
}

// check looks at how the address that text is begins.
func (a *Address) check(text string) error {
	parts := a.parts
	if len(parts) > 1 && (parts[0].variable == "scheme" || parts[0].variable == "pass_access_scheme") {
		parts = parts[1:]
	} else if !strings.HasPrefix(text, "http://") && !strings.HasPrefix(text, "https://") {
		return fmt.Errorf("%q does not begin with http:// or https://", text)
	}
	_, host, ok := strings.Cut(string(parts[0].literal), "://")
	if !ok {
		return errors.New("it has no host")
	}
	return a.authority(host, parts[1:])
}

// authority checks what stands between "://" and the path: host, then the parts
// that follow it.
func (a *Address) authority(host string, parts []part) error {
	some := false
	for {
		if host != "" {
			i := strings.IndexAny(host, "/?")
			named := host
			if i >= 0 {
				named = host[:i]
			}
			if strings.ContainsAny(named, "@%") {
				return errors.New("its host has a character that no host has")
			}
			if some = some || named != ""; i >= 0 {
				break
			}
		}
		if len(parts) == 0 {
			break
		}
		p := parts[0]
		parts = parts[1:]
		host = string(p.literal)
		switch p.variable {
		case "":
			continue
		case "group":
			if !a.groups {
				return fmt.Errorf("%s may not decide which host is meant", p.name())
			}
			a.ByHost, some = true, true
		case "host", "http_host", "best_http_host":
			a.ByHost, some = true, true
		case "server_port", "pass_server_port", "pass_port":
			if !a.ports {
				return fmt.Errorf("%s may not decide which host is meant", p.name())
			}
		case "namespace", "ingress_name", "service_name", "service_port":
			some = true
		case "request_uri", "uri", "document_uri": // they begin with a slash
			parts = nil
		case "set", "found", "table":
			if !p.ofHost {
				return fmt.Errorf("%s may not decide which host is meant", p.name())
			}
			a.ByHost, some = true, true
		default:
			return fmt.Errorf("%s may not decide which host is meant", p.name())
		}
	}
	if !some {
		return errors.New("it has no host")
	}
	return nil
}

package snippet

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"quayside.io/cluster/printable"
	"quayside.io/proxy/filter"
	"quayside.io/proxy/nginxconf"
)

// Upstream is who an address of proxy_pass means: a Service and its namespace, or the name or
// address of who is no Service, in lower case. Port is the address's or the scheme's.
type Upstream struct {
	Service, Namespace, Outside string
	Port                        int32
	TLS                         bool
}

// address is what proxy_pass names.
type address struct {
	origin string // scheme and host, as written
	host   string // with its port
	uri    string // behind that; "": the path that was asked
	filled bool   // it had variables, so that nothing is appended to uri
	asked  bool   // uri was $request_uri, whatever the path is by then
}

// parsePass reads http://NAME.NAMESPACE.svc:PORT/PATH, or another host. values are the variables
// that are known to be a text.
func parsePass(text string, values map[string]string) (a address, u Upstream, err error) {
	a.filled = strings.Contains(text, "$")
	scheme, rest, found := strings.Cut(fillConstants(text, values), "://")
	if !found || scheme != "http" && scheme != "https" {
		return a, u, errors.New("it does not begin with http:// or https://")
	}
	end := strings.IndexAny(rest, "/$")
	if end < 0 {
		end = len(rest)
	}
	a.origin, a.host, a.uri = scheme+"://"+rest[:end], rest[:end], rest[end:]
	if a.asked = a.uri == "$request_uri"; a.asked {
		a.uri = ""
	}
	if name, _ := filter.VariableName(strings.TrimPrefix(a.uri, "$")); strings.HasPrefix(a.uri, "$") && !slices.Contains([]string{"uri", "document_uri", "request_uri"}, name) {
		return a, u, fmt.Errorf("$%s may not decide which host is meant: begin what stands behind the host with a slash", name)
	}
	if strings.ContainsFunc(a.uri, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`#"<>\\`, r) }) {
		return a, u, errors.New("behind the host is a character that no address has; write it escaped")
	}
	if u.Port, u.TLS = 80, scheme == "https"; u.TLS {
		u.Port = 443
	}
	err = u.whose(a.host)
	return a, u, err
}

// fillConstants puts texts in the place of variables up to the end of the host.
func fillConstants(text string, values map[string]string) string {
	for {
		before, after, found := strings.Cut(text, "$")
		name, rest := filter.VariableName(after)
		value := values[strings.ToLower(name)]
		if _, host, _ := strings.Cut(before, "://"); !found || value == "" || strings.Contains(host, "/") {
			return text
		}
		text = before + value + rest
	}
}

// whose reads whose address it is.
func (u *Upstream) whose(host string) error {
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		n, err := strconv.ParseUint(host[i+1:], 10, 16)
		if err != nil || n == 0 {
			return fmt.Errorf("%q is no port", printable.Cut(host[i+1:], MaxQuoted))
		}
		host, u.Port = host[:i], int32(n)
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	labels := strings.Split(host, ".")
	switch {
	case len(labels) >= 3 && labels[2] == "svc" && labels[0] != "" && labels[1] != "":
		u.Service, u.Namespace = labels[0], labels[1]
	case len(labels) == 1 && !strings.HasPrefix(host, "["):
		return errors.New("it is not a whole name: write NAME.NAMESPACE.svc of a Service")
	default:
		u.Outside = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	return nil
}

// constantsOf are the variables that a block sets once, to a text without any, by their names in
// lower case.
func constantsOf(block []nginxconf.Directive) map[string]string {
	values := map[string]string{}
	var walk func(block []nginxconf.Directive, sometimes bool)
	walk = func(block []nginxconf.Directive, sometimes bool) {
		for i := range block {
			walk(block[i].Block, true)
			args := block[i].Args()
			if block[i].Name() != "set" || len(args) != 2 || !strings.HasPrefix(args[0], "$") {
				continue
			}
			name := strings.ToLower(args[0][1:])
			_, twice := values[name]
			if values[name] = args[1]; twice || sometimes || strings.Contains(args[1], "$") {
				values[name] = ""
			}
		}
	}
	walk(block, false)
	return values
}

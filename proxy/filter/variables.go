package filter

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"quayside.io/proxy/exchange"
)

// Place is where a route stands: what variables such as $service_name mean.
type Place struct {
	Namespace, Ingress, Service, Port string
	Hostname                          string         // of the machine, or the pod
	Host, Path                        string         // of the rule
	Exact                             bool           // the rule is about no other path
	Pattern                           *regexp.Regexp // of a path that is one, whose groups are $1 to $9; else nil
	Took                              time.Duration  // all of a request that has ended; 0: it goes on

	searched []byte  // where Pattern is found, unless nil, instead of the path
	theirs   bool    // searched is the upstream's own words
	answer   *Answer // what $upstream_http_NAME is a field of; nil: of nothing
}

// Template is a text with variables of nginx, such as "https://$host/start". It
// is read once and never executed: what a variable brings in is not read again.
type Template struct{ parts []part }

// part is a literal or a variable.
type part struct {
	literal  []byte
	variable string                                        // empty: literal
	of       string                                        // the NAME of $http_NAME, $arg_NAME, $cookie_NAME, $upstream_http_NAME
	group    int                                           // of $1 to $9, or which variable of a script it is
	ofHost   bool                                          // of a script: no client decides what it is, save by the host that it came by
	table    *Table                                        // of a variable that has one
	asked    bool                                          // until a script sets it, the host that the client asked for
	tell     func(r *exchange.Request, rule string) []byte // of a variable that is told by a function, of requests for the host of a rule
}

// ParseTemplate reads a text. Variables are written $name or ${name}; those that
// mean nothing here are an error. A "$" before no name is itself.
func ParseTemplate(text string) (*Template, error) { return parseTemplate(text, variable) }

// parseTemplate reads a text with the variables that are known.
func parseTemplate(text string, known func(name string) (part, bool)) (*Template, error) {
	t := &Template{}
	for {
		before, after, found := strings.Cut(text, "$")
		t.literal(before)
		if !found {
			return t, nil
		}
		name, rest := VariableName(after)
		if name == "" {
			t.literal("$")
			text = after
			continue
		}
		p, ok := known(name)
		if !ok {
			return nil, unknownVariable(name)
		}
		t.parts = append(t.parts, p)
		text = rest
	}
}

// unknownVariable is an error: its name.
type unknownVariable string

// Error implements error.
func (name unknownVariable) Error() string {
	if strings.HasPrefix(strings.ToLower(string(name)), "geoip2_") {
		return fmt.Sprintf("variable $%.80s is not known: --maxmind-edition-ids (in the chart proxy.geoip.editions) names no database that has it", string(name))
	}
	return fmt.Sprintf("variable $%.80s is not known", string(name))
}

// name is how p is written.
func (p *part) name() string {
	switch p.variable {
	case "group", "found":
		return "$" + strconv.Itoa(p.group)
	case "set", "table", "function":
		return "$" + p.of
	}
	return "$" + p.variable + p.of
}

func (t *Template) literal(text string) {
	if text != "" {
		t.parts = append(t.parts, part{literal: []byte(text)})
	}
}

// Literal returns a text in which nothing is a variable.
func Literal(text string) *Template {
	t := &Template{}
	t.literal(text)
	return t
}

// VariableName cuts a name, perhaps in braces, off the start of what follows a dollar sign; "":
// there is none.
func VariableName(text string) (name, rest string) {
	if text != "" && '1' <= text[0] && text[0] <= '9' { // what follows a group is text
		return text[:1], text[1:]
	}
	if inside, braced := strings.CutPrefix(text, "{"); braced {
		if name, rest, ok := strings.Cut(inside, "}"); ok && wordLength(name) == len(name) {
			return name, rest
		}
		return "", text
	}
	n := wordLength(text)
	return text[:n], text[n:]
}

func wordLength(s string) int {
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c < '0' || '9' < c) && (c < 'a' || 'z' < c) && (c < 'A' || 'Z' < c) {
			return i
		}
	}
	return len(s)
}

// answerPrefix begins the names of variables that are fields of an answer.
const answerPrefix = "upstream_http_"

// variableOfAnswer is variable where there is an answer.
func variableOfAnswer(name string) (part, bool) {
	lower := strings.ToLower(name)
	if of, ok := strings.CutPrefix(lower, answerPrefix); ok && of != "" {
		return part{variable: answerPrefix, of: strings.ReplaceAll(of, "_", "-")}, true
	}
	if lower == "upstream_status" {
		return part{variable: lower}, true
	}
	return variable(name)
}

// variable returns what a name, in any letter case, stands for.
func variable(name string) (part, bool) {
	said := name
	name = strings.ToLower(name)
	for _, prefix := range [...]string{"http_", "arg_", "cookie_"} {
		if !strings.HasPrefix(name, prefix) || name == prefix || name == "http_host" {
			continue
		}
		of := said[len(prefix):]
		if prefix == "http_" {
			of = exchange.Told(strings.ReplaceAll(of, "_", "-"))
		}
		return part{variable: prefix, of: of}, true
	}
	if len(name) == 1 && '1' <= name[0] && name[0] <= '9' {
		return part{variable: "group", group: int(name[0] - '0')}, true
	}
	switch name {
	case "scheme", "pass_access_scheme", "full_x_forwarded_proto", "host", "http_host", "best_http_host", "server_name",
		"server_port", "pass_server_port", "pass_port", "request_uri", "escaped_request_uri", "uri", "document_uri", "args", "query_string",
		"is_args", "remote_addr", "the_real_ip", "binary_remote_addr", "remote_user", "request_method", "request_id", "req_id", "content_type", "content_length",
		"proxy_add_x_forwarded_for", "msec", "time_iso8601", "time_local", "server_protocol", "request", "https", "remote_port",
		"ssl_server_name", "ssl_client_verify", "ssl_client_s_dn", "ssl_client_i_dn", "ssl_client_escaped_cert", "proxy_upstream_name", "proxy_host", "namespace", "ingress_name", "service_name", "service_port", "location_path", "hostname":
		return part{variable: name}, true
	}
	return part{}, false
}

// appendURL appends t with its variables filled in; what may not stand in a URL is
// escaped.
func (t *Template) appendURL(dst []byte, ex *exchange.Exchange, at *Place) []byte {
	return t.append(dst, ex, at, appendAddress, appendAddress)
}

// appendField appends t with its variables filled in, without what may not stand
// in a field.
func (t *Template) appendField(dst []byte, ex *exchange.Exchange, at *Place) []byte {
	return t.append(dst, ex, at, appendClean, appendClean)
}

// A writer appends a part so that it can be nothing but a part of what it stands in.
type writer func(dst, b []byte) []byte

// field is what appendField appends to nothing. What has no variables costs no memory.
func (t *Template) field(ex *exchange.Exchange, at *Place) []byte {
	if len(t.parts) == 1 && t.parts[0].variable == "" && exchange.IsFieldValue(t.parts[0].literal) {
		return t.parts[0].literal
	}
	return t.appendField(nil, ex, at)
}

func (t *Template) append(dst []byte, ex *exchange.Exchange, at *Place, literal, value writer) []byte {
	for i := range t.parts {
		p := &t.parts[i]
		switch {
		case p.variable == "":
			dst = literal(dst, p.literal)
		case p.variable == "group" && at.theirs:
			dst = literal(dst, p.value(ex, at))
		default:
			dst = value(dst, p.value(ex, at))
		}
	}
	return dst
}

// filler returns what fills t in for the requests of a place, once for all where there is
// nothing to fill in.
func (t *Template) filler(at Place, literal, value writer) func(*exchange.Exchange) []byte {
	if t.HasVariables() {
		return func(ex *exchange.Exchange) []byte { return t.append(nil, ex, &at, literal, value) }
	}
	made := t.append(nil, nil, nil, literal, value)
	return func(*exchange.Exchange) []byte { return made }
}

// HasVariables reports whether anything is filled in.
func (t *Template) HasVariables() bool {
	return slices.ContainsFunc(t.parts, func(p part) bool { return p.variable != "" })
}

// Text returns t if nothing is filled in.
func (t *Template) Text() (text string, fixed bool) {
	if t.HasVariables() {
		return "", false
	}
	return string(t.append(nil, nil, nil, appendClean, appendClean)), true
}

// HasGroups reports whether $1 to $9 are.
func (t *Template) HasGroups() bool {
	return slices.ContainsFunc(t.parts, func(p part) bool { return p.variable == "group" || p.variable == "found" })
}

// IsURL reports whether t begins as an address does, and not as a path.
func (t *Template) IsURL() bool {
	if len(t.parts) == 0 {
		return false
	}
	p := &t.parts[0]
	return isAddress(p.literal) || p.variable == "scheme"
}

// Has reports whether what is no variable has one of some characters.
func (t *Template) Has(chars string) bool {
	return slices.ContainsFunc(t.parts, func(p part) bool { return bytes.ContainsAny(p.literal, chars) })
}

// appendAddress appends part of a URL before its fragment.
func appendAddress(dst, b []byte) []byte {
	for {
		before, after, more := bytes.Cut(b, []byte{'#'})
		dst = appendEscaped(dst, before)
		if !more {
			return dst
		}
		dst = append(dst, "%23"...)
		b = after
	}
}

// appendAsIs appends b.
func appendAsIs(dst, b []byte) []byte { return append(dst, b...) }

// appendClean appends b without control characters.
func appendClean(dst, b []byte) []byte {
	for _, c := range b {
		if c >= ' ' && c != 0x7f || c == '\t' {
			dst = append(dst, c)
		}
	}
	return dst
}

// value returns what a variable stands for in an exchange.
func (p *part) value(ex *exchange.Exchange, at *Place) []byte {
	r := &ex.Request
	switch p.variable {
	case "http_":
		return r.Header.Asked(p.of)
	case "arg_":
		return exchange.Argument(r.Target, p.of)
	case "cookie_":
		return r.Header.Cookie(p.of)
	case answerPrefix:
		return at.answer.field(p.of)
	case "upstream_status":
		return at.answer.status()
	case "scheme", "pass_access_scheme", "full_x_forwarded_proto":
		return scheme(r)
	case "table":
		return p.tableValue(ex, at)
	case "function":
		return p.tell(r, at.Host)
	case "set", "found":
		return p.scriptValue(ex, at)
	case "group":
		if at.searched != nil {
			return at.group(p.group, at.searched)
		}
		return at.group(p.group, r.Path)
	case "host":
		return bytes.ToLower(exchange.HostName(r.AskedHost()))
	case "http_host":
		return r.AskedHost()
	case "best_http_host":
		return r.BestHost()
	case "server_port", "pass_server_port", "pass_port":
		return digits(r.Header.Get("X-Forwarded-Port")) // which may stand behind a host
	case "request_uri":
		return r.AskedTarget()
	case "escaped_request_uri":
		return appendComponent(nil, r.AskedTarget())
	case "uri", "document_uri":
		return r.Path
	case "args", "query_string":
		return exchange.Query(r.Target)
	case "is_args":
		if len(exchange.Query(r.Target)) > 0 {
			return []byte{'?'}
		}
		return nil
	case "remote_addr", "the_real_ip":
		return r.Client.Addr().AppendTo(nil)
	case "binary_remote_addr":
		return r.Client.Addr().Unmap().AsSlice()
	case "response":
		return responseValue(p.of, ex, at)
	case "remote_user":
		return r.AppendUser(nil)
	case "request_method":
		return r.Method
	case "request_id", "req_id":
		return r.Header.Get("X-Request-ID")
	case "content_type":
		return r.Header.Get("Content-Type")
	case "content_length":
		if r.Body == nil || r.Length < 0 {
			return nil
		}
		return strconv.AppendInt(nil, r.Length, 10)
	case "proxy_add_x_forwarded_for":
		return r.Header.AddedForwardedFor()
	case "msec", "time_iso8601", "time_local":
		return appendTime(nil, p.variable, r.Received)
	}
	if b, ok := connectionValue(p.variable, r); ok {
		return b
	}
	return []byte(at.value(p.variable))
}

// digits returns b if it is a number.
func digits(b []byte) []byte {
	if bytes.ContainsFunc(b, func(r rune) bool { return r < '0' || r > '9' }) {
		return nil
	}
	return b
}

// connectionValue is what a variable says of a client's connection, if it says anything of that.
func connectionValue(variable string, r *exchange.Request) (value []byte, ok bool) {
	switch variable {
	case "server_protocol":
		return []byte(r.Protocol), true
	case "request":
		return slices.Concat(r.Method, []byte{' '}, r.AskedTarget(), []byte{' '}, []byte(r.Protocol)), true
	case "https":
		if !r.TLS {
			return nil, true
		}
		return []byte("on"), true
	case "remote_port":
		return strconv.AppendUint(nil, uint64(r.Client.Port()), 10), true
	case "ssl_server_name":
		if r.Handshake == nil {
			return nil, true
		}
		return []byte(r.Handshake.ServerName), true
	case "ssl_client_verify", "ssl_client_s_dn", "ssl_client_i_dn", "ssl_client_escaped_cert":
		return []byte(certificateValue(variable, r)), true
	}
	return nil, false
}

// certificateValue is what a variable says of a client's certificate. Where a route asks for
// none, none is known.
func certificateValue(variable string, r *exchange.Request) string {
	c := r.Certificate
	switch {
	case c == nil && r.Handshake != nil && variable == "ssl_client_verify":
		return "NONE"
	case c == nil:
		return ""
	case variable == "ssl_client_s_dn":
		return c.Subject
	case variable == "ssl_client_i_dn":
		return c.Issuer
	case variable == "ssl_client_escaped_cert":
		return c.Escaped
	}
	return c.Verify
}

// appendTime appends when a request was received, as nginx writes it.
func appendTime(dst []byte, variable string, received time.Time) []byte {
	switch variable {
	case "time_iso8601":
		return received.AppendFormat(dst, "2006-01-02T15:04:05-07:00")
	case "time_local":
		return received.AppendFormat(dst, "02/Jan/2006:15:04:05 -0700")
	}
	return exchange.AppendMillis(dst, received.UnixMilli())
}

// group returns what a group of the place's pattern has found in a normalised path. One that
// is not found in it as it is, is found in it as nginx reads it.
func (at *Place) group(n int, path []byte) []byte {
	if at.Pattern == nil {
		return nil
	}
	found := at.Pattern.FindSubmatchIndex(path)
	if found == nil {
		path = AppendDecoded(nil, path)
		found = at.Pattern.FindSubmatchIndex(path)
	}
	if 2*n+1 >= len(found) || found[2*n] < 0 {
		return nil
	}
	return path[found[2*n]:found[2*n+1]]
}

func (at *Place) value(variable string) string {
	switch variable {
	case "namespace":
		return at.Namespace
	case "ingress_name":
		return at.Ingress
	case "service_name":
		return at.Service
	case "service_port":
		return at.Port
	case "location_path":
		return at.Path
	case "hostname":
		return at.Hostname
	case "server_name":
		return at.Host
	case "proxy_upstream_name", "proxy_host":
		return at.Namespace + "-" + at.Service + "-" + at.Port
	}
	return ""
}

func scheme(r *exchange.Request) []byte {
	if r.TLS {
		return []byte("https")
	}
	return []byte("http")
}

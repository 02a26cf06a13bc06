package accesslog

import (
	"fmt"
	"strings"
	"time"

	"quayside.io/proxy/exchange"
)

// Record is one request that has ended. Keep it for the next: it holds the memory of
// the line.
type Record struct {
	Exchange *exchange.Exchange
	Place    Place
	// Ended is when, and Took the time from the end of the request's head until then; 0
	// if the head never came in full.
	Ended time.Time
	Took  time.Duration
	// Broken says that the response ended early.
	Broken bool
	// Hostname is the name of the machine, or of the pod.
	Hostname string

	line  []byte
	json  bool
	blank bool // the variable has a value, though there may be nothing in it
}

// Place is where the request was routed to. Its zero value is nowhere.
type Place struct {
	Namespace, Ingress, Service, Port string
	Host, Path                        string // of the rule
	Upstream                          string // "namespace-service-port"
	// Split says that there are other backends than Upstream for such requests.
	Split bool
}

// Format is how lines look. It is immutable.
type Format struct {
	parts []part
	json  bool
}

// part is a literal or a variable.
type part struct {
	literal string
	write   func(r *Record, of string) // nil: literal
	of      string                     // the NAME of $http_NAME
}

// The formats that have names.
const (
	combined = `$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"`
	// That of ingress-nginx.
	upstreamInfo = combined + ` $request_length $request_time [$proxy_upstream_name] [$proxy_alternative_upstream_name] ` +
		`$upstream_addr $upstream_response_length $upstream_response_time $upstream_status $req_id`
)

// jsonFields are those of the format json where no others are chosen.
func jsonFields() []string {
	return []string{
		"time_iso8601", "remote_addr", "remote_user", "request_method", "scheme", "host", "request_uri", "server_protocol", "status",
		"body_bytes_sent", "request_length", "request_time", "http_referer", "http_user_agent", "namespace", "ingress_name",
		"service_name", "upstream_addr", "upstream_status", "upstream_response_length", "upstream_response_time", "request_id",
	}
}

// Lookup finds variables that nobody here knows: it returns what tells their values, or nil.
// One that is nil finds nothing.
type Lookup func(name string) func(r *Record) []byte

// Named returns the format with a name: combined, upstreaminfo or json. A text with
// variables is its own format.
func Named(name string, more Lookup) (*Format, error) {
	switch {
	case name == "combined":
		return Parse(combined, false, nil)
	case name == "upstreaminfo":
		return Parse(upstreamInfo, false, nil)
	case name == "json":
		return JSON(jsonFields(), nil)
	case strings.Contains(name, "$"):
		return Parse(name, false, more)
	}
	return nil, fmt.Errorf("%q is none of combined, upstreaminfo, json, and no text with variables", name)
}

// Parse reads a text with variables, written $name or ${name}. With json what they
// stand for is escaped for JSON; without, as nginx does by default.
func Parse(text string, json bool, more Lookup) (*Format, error) {
	f := &Format{json: json}
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' ' // a line is one line
		}
		return r
	}, text)
	for {
		before, after, found := strings.Cut(text, "$")
		f.literal(before)
		if !found {
			return f, nil
		}
		name, rest := cutName(after)
		if err := f.variable(name, more); err != nil {
			return nil, err
		}
		text = rest
	}
}

// JSON returns the format whose lines are JSON objects of these fields, which are
// names of variables.
func JSON(fields []string, more Lookup) (*Format, error) {
	f := &Format{json: true}
	for i, name := range fields {
		f.literal([]string{`{"`, `,"`}[min(i, 1)] + name + `":`)
		quote := `"`
		if isNumber(name) {
			quote = ""
		}
		f.literal(quote)
		if err := f.variable(name, more); err != nil {
			return nil, err
		}
		f.literal(quote)
	}
	if len(fields) == 0 {
		return nil, fmt.Errorf("there are no fields")
	}
	f.literal("}")
	return f, nil
}

func (f *Format) literal(text string) {
	if n := len(f.parts); n > 0 && f.parts[n-1].write == nil {
		f.parts[n-1].literal += text
	} else if text != "" {
		f.parts = append(f.parts, part{literal: text})
	}
}

func (f *Format) variable(name string, more Lookup) error {
	write, of := lookUp(name)
	if write == nil && more != nil {
		if value := more(name); value != nil {
			write = func(r *Record, _ string) { r.bytes(value(r)) }
		}
	}
	if write == nil {
		return fmt.Errorf("variable $%s is not known", name)
	}
	f.parts = append(f.parts, part{write: write, of: of})
	return nil
}

// cutName cuts a name, perhaps in braces, off the start of text.
func cutName(text string) (name, rest string) {
	if inside, braced := strings.CutPrefix(text, "{"); braced {
		if name, rest, closed := strings.Cut(inside, "}"); closed {
			return name, rest
		}
		return text, ""
	}
	n := 0
	for n < len(text) && (text[n] == '_' || isAlphanumeric(text[n])) {
		n++
	}
	return text[:n], text[n:]
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// Line returns the line of r, without its end. It is valid until the next one of r.
func (f *Format) Line(r *Record) []byte {
	r.line, r.json = r.line[:0], f.json
	for i := range f.parts {
		p := &f.parts[i]
		if p.write == nil {
			r.line = append(r.line, p.literal...)
			continue
		}
		before := len(r.line)
		r.blank = false
		p.write(r, p.of)
		if len(r.line) == before && !r.blank && !f.json {
			r.line = append(r.line, '-')
		}
	}
	return r.line
}

// Reset forgets the request and keeps the memory.
func (r *Record) Reset() { *r = Record{line: r.line[:0]} }

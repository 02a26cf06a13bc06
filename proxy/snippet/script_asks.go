package snippet

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"quayside.io/cluster/printable"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/nginxconf"
)

// question is a location that nobody but auth_request and mirror lead to, and that asks a service.
type question struct {
	path   string // of the location
	exact  bool
	url    string
	filled bool // url has variables, so that nothing is appended to a path in it
	method string
	lines  []string // fields of what is asked
	noBody bool
}

// question makes one of a location, if it is one.
func (w *scripter) question(d *nginxconf.Directive) (is bool, err error) {
	if !w.ofHost || !asksInside(d) {
		return false, nil
	}
	args := d.Args()
	if len(args) == 0 {
		return false, errors.New("it is not one path or pattern")
	}
	q := question{path: args[len(args)-1], exact: args[0] == "="}
	if len(args) > 2 || len(args) == 2 && !q.exact && args[0] != "^~" || !strings.HasPrefix(q.path, "/") {
		return false, errors.New("a service is asked by a location of one path, or of those below it")
	}
	values := map[string]string{}
	for i := range d.Block {
		inner := &d.Block[i]
		if err := q.take(inner, values, w.table); err != nil {
			return false, fmt.Errorf("of %s: %w", Quoted(inner), err)
		}
	}
	q.filled = strings.Contains(q.url, "$")
	if name, _, _ := strings.Cut(q.url, "/"); strings.HasPrefix(name, "$") && values[name[1:]] != "" {
		q.url = values[name[1:]] + q.url[len(name):]
	}
	for _, text := range append(q.lines, q.url) {
		if slices.ContainsFunc([]string{"$uri", "$document_uri", "$args", "$query_string", "$is_args", "${"}, func(v string) bool { return strings.Contains(text, v) }) {
			return false, fmt.Errorf("%s has a variable of the question itself: $request_uri is the request's", printable.Cut(text, MaxQuoted))
		}
	}
	w.known.questions = append(w.known.questions, q)
	return true, nil
}

// asksInside reports whether a location has a service asked, though not by clients.
func asksInside(d *nginxconf.Directive) bool {
	return slices.ContainsFunc(d.Block, nginxconf.IsNamed("internal")) && slices.ContainsFunc(d.Block, nginxconf.IsNamed("proxy_pass"))
}

// hidden reports whether another location of a list may be the one that auth_request leads to
// in the place of d.
func hidden(d *nginxconf.Directive, list []nginxconf.Directive) bool {
	own := d.Args()
	return own[0] != "=" && slices.ContainsFunc(list, func(other nginxconf.Directive) bool {
		args := other.Args()
		if other.Name() != "location" || len(args) == 0 || &args[0] == &own[0] {
			return false
		}
		isPattern := strings.HasPrefix(args[0], "~")
		return isPattern && own[0] != "^~" || !isPattern && strings.HasPrefix(args[len(args)-1], own[len(own)-1])
	})
}

// asking are the paths that the directives of a list have asked.
func asking(list []nginxconf.Directive) (paths []string) {
	for i := range list {
		if d := &list[i]; (d.Name() == "auth_request" || d.Name() == "mirror") && len(d.Args()) == 1 {
			paths = append(paths, d.Words[1])
		}
	}
	return paths
}

// isAsked reports whether a snippet has a location of a list asked.
func (w *scripter) isAsked(d *nginxconf.Directive, list []nginxconf.Directive) bool {
	args := d.Args()
	return len(args) > 0 && slices.ContainsFunc(slices.Concat(asking(list), w.known.asking), func(path string) bool {
		at := args[len(args)-1]
		return path == at || args[0] != "=" && strings.HasPrefix(path, at)
	})
}

// take takes one of its directives; values are the variables that it sets.
func (q *question) take(d *nginxconf.Directive, values map[string]string, table map[string]directive) error {
	args := d.Args()
	one := len(args) == 1 && d.Block == nil
	switch name := d.Name(); {
	case name == "internal", IsOfLog(strings.Join(d.Words, " ")):
	case name == "proxy_pass" && one && q.url == "":
		q.url = args[0]
	case name == "proxy_pass_request_body" && one && (args[0] == "on" || args[0] == "off"):
		q.noBody = args[0] == "off"
	case name == "proxy_method" && one:
		q.method = args[0]
	case name == "set" && len(args) == 2 && !strings.Contains(args[1], "$") && len(args[0]) > 1 && values[args[0][1:]] == "":
		values[args[0][1:]] = args[1]
	case name == "proxy_set_header" && len(args) == 2 && d.Block == nil:
		return q.setHeader(args[0], args[1])
	case name == "proxy_pass_request_headers" && one && args[0] == "on",
		(name == "auth_request" || name == "auth_basic") && one && args[0] == "off",
		isHidden(name), strings.HasPrefix(name, "proxy_ssl_") && name != "proxy_ssl_certificate" && name != "proxy_ssl_certificate_key" && name != "proxy_ssl_name",
		name == "client_body_buffer_size", strings.HasPrefix(name, "proxy_cache"), name == "proxy_set_body" && one && args[0] == "":
	default:
		if said, known := on(table, d); !known || !said.Needless {
			return errors.New("a question to a service has nothing of that")
		}
	}
	return nil
}

// setHeader notes a field of the question. What is framing is ours to say, and there is no body.
func (q *question) setHeader(name, value string) error {
	switch {
	case !exchange.IsToken([]byte(name)) || !exchange.IsFieldValue(value):
		return errors.New("it is not a field of HTTP")
	case strings.EqualFold(name, "host") && value == "$proxy_host":
	case strings.EqualFold(name, "host") || !isFraming(name):
		q.lines = append(q.lines, name+": "+value)
	}
	return nil
}

// at returns the address that is asked for a path of nginx's.
func (q *question) at(path string) string {
	scheme, rest, _ := strings.Cut(q.url, "://")
	i := strings.IndexByte(rest, '/')
	switch {
	case q.filled && (i >= 0 || strings.HasSuffix(q.url, "$request_uri")):
		return q.url
	case i < 0:
		return scheme + "://" + rest + path
	}
	return scheme + "://" + rest + strings.TrimPrefix(path, q.path)
}

// asks makes options of auth_request PATH and mirror PATH: of the location that has the path.
func (w *scripter) asks(list []nginxconf.Directive) error {
	copies, noBodies := 0, false
	for i := range list {
		d := &list[i]
		switch d.Name() {
		case "mirror_request_body":
			noBodies = slices.Equal(d.Args(), []string{"off"})
		case "mirror":
			copies++
		case "auth_request":
		default:
			continue
		}
		if err := at(d, w.ask(d)); err != nil {
			return err
		}
	}
	switch {
	case copies > 1:
		return errors.New("it has more than one mirror")
	case copies == 1 && noBodies:
		w.asked = append(w.asked, Setting{"mirror-request-body", "off"})
	}
	return nil
}

// ask makes options of one of them.
func (w *scripter) ask(d *nginxconf.Directive) error {
	args, copies := d.Args(), d.Name() == "mirror"
	if d.Name() == "mirror_request_body" {
		return nil
	}
	if len(args) != 1 || d.Block != nil || !strings.HasPrefix(args[0], "/") {
		return errors.New("it is not one path")
	}
	q := w.questionAt(args[0])
	instead := "auth-url has one asked"
	if copies {
		instead = "mirror-target sends copies"
	}
	switch {
	case q == nil:
		return fmt.Errorf("no server-snippet of the Ingress has an internal location for %s that asks a service; %s", printable.Cut(args[0], MaxQuoted), instead)
	case copies:
		return w.mirror(q, args[0])
	}
	w.asked = append(w.asked, Setting{"auth-url", q.at(args[0])}, Setting{"auth-request-headers", strings.Join(q.lines, "\n")})
	if q.method != "" && q.method != "GET" {
		w.asked = append(w.asked, Setting{"auth-method", q.method})
	}
	return nil
}

// mirror makes options of copies that go to the location of a path.
func (w *scripter) mirror(q *question, path string) error {
	if q.method != "" {
		return errors.New("a copy has the method of the request")
	}
	var lines []string
	for _, line := range q.lines {
		if name, value, _ := strings.Cut(line, ": "); strings.EqualFold(name, "host") {
			w.asked = append(w.asked, Setting{"mirror-host", value})
		} else {
			lines = append(lines, line)
		}
	}
	w.asked = append(w.asked, Setting{"mirror-target", q.at(path)}, Setting{"mirror-request-headers", strings.Join(lines, "\n")})
	if q.noBody {
		w.asked = append(w.asked, Setting{"mirror-request-body", "off"})
	}
	return nil
}

// questionAt returns what is asked by the location that has a path; nil: there is none.
func (w *scripter) questionAt(path string) (found *question) {
	for i := range w.known.questions {
		q := &w.known.questions[i]
		switch {
		case q.exact && q.path == path:
			return q
		case !q.exact && strings.HasPrefix(path, q.path) && (found == nil || len(found.path) < len(q.path)):
			found = q
		}
	}
	return found
}

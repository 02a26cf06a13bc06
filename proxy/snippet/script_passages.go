package snippet

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"quayside.io/cluster/printable"
	"quayside.io/proxy/filter"
	"quayside.io/proxy/nginxconf"
)

// Passage is a location that clients ask for, or that errors lead to, and that has somebody
// asked: a route of its own, of the Ingress whose server-snippet it stands in.
type Passage struct {
	Upstream
	Path  string // what paths begin with, the text of a pattern, or a name that begins with @
	Exact bool   // there is that path alone
	// To is where in the Service it leads; nil: to the path that was asked. Filled is a path with
	// variables in the place of both, to be read by what the snippets of the route say.
	To     *filter.UpstreamPath
	Filled string
	// Options are of the route, and Snippet is what else the location says.
	Options []Setting
	Snippet string
}

// maxPassages bounds those of one Ingress.
const maxPassages = 16

// passage makes the place and the passage of a location with proxy_pass, if it is one.
func (w *scripter) passage(d *nginxconf.Directive) (place filter.ScriptPlace, rank int, is bool, err error) {
	if !slices.ContainsFunc(d.Block, nginxconf.IsNamed("proxy_pass")) {
		return place, 0, false, nil
	}
	if place, rank, err = w.head(d); err != nil {
		return place, rank, true, err
	}
	switch {
	case !w.ofHost:
		err = errors.New("a location with proxy_pass stands in a server-snippet alone")
	case len(w.passages) == maxPassages:
		err = fmt.Errorf("there are more than %d locations with proxy_pass", maxPassages)
	}
	if err != nil {
		return place, rank, true, err
	}
	b := passageBuilder{Passage: Passage{Path: d.Words[len(d.Words)-1], Exact: place.Exact}, isPrefix: place.Pattern == nil && rank != hasName}
	err = b.build(d.Block)
	w.passages = append(w.passages, b.Passage)
	place.Steps = []filter.Step{&filter.Pass{Passage: len(w.passages)}}
	return place, rank, true, err
}

// innerPassage is passage of a location that clients do not ask for, if it can be one.
func (w *scripter) innerPassage(d *nginxconf.Directive) (place filter.ScriptPlace, rank int, ok bool) {
	before := len(w.passages)
	place, rank, _, err := w.passage(d)
	if err == nil {
		err = w.check(w.passages[before])
	}
	if err != nil {
		w.passages = w.passages[:before]
	}
	return place, rank, err == nil
}

// passageBuilder reads the directives of one.
type passageBuilder struct {
	Passage
	isPrefix bool
	url      address
	hosted   bool // the Host is set
	kept     bool // redirects are left as they are
}

func (b *passageBuilder) build(block []nginxconf.Directive) error {
	values := constantsOf(block)
	for i := range block {
		d := &block[i]
		if err := b.take(d, values); err != nil {
			return fmt.Errorf("of %s: %w", Quoted(d), err)
		}
	}
	if !b.hosted {
		b.Options = append(b.Options, Setting{"upstream-vhost", b.url.host})
	}
	if path, ends := strings.CutSuffix(b.Path, "/"); b.isPrefix && ends && path != "" && !b.Exact {
		b.Snippet = "if ($uri = " + quote(path) + ") { return 301 " + quote(b.Path+"$is_args$args") + "; }\n" + b.Snippet
	}
	return b.lead()
}

// take takes one directive. What no option is for stays a snippet.
func (b *passageBuilder) take(d *nginxconf.Directive, values map[string]string) error {
	args := d.Args()
	one := len(args) == 1 && d.Block == nil
	switch name := d.Name(); {
	case name == "proxy_pass" && one && b.url.host == "":
		return b.pass(args[0], values)
	case name == "proxy_pass":
		return errors.New("it is not one address")
	case name == "internal", name == "keepalive_timeout", name == "keepalive_requests": // the ConfigMap says those for all
		return nil
	case name == "proxy_redirect" && one && args[0] == "off":
		b.kept = true
		return nil
	case name == "proxy_redirect" && one && args[0] == "default":
		return nil
	case name == "proxy_redirect" && len(args) == 2 && !b.kept && !strings.Contains(args[0]+args[1], "$"):
		b.kept = true
		b.Options = append(b.Options, Setting{"proxy-redirect-from", args[0]}, Setting{"proxy-redirect-to", args[1]})
		return nil
	case name == "proxy_set_header" && len(args) == 2 && strings.EqualFold(args[0], "host"):
		if b.hosted = args[1] != "$proxy_host"; !b.hosted {
			return nil
		}
	case name == "auth_request" && one && args[0] == "off", name == "auth_basic" && one && args[0] == "off":
		return nil
	}
	if said, known := on(passageOptions(), d); known {
		if len(said.Options) == 0 {
			return errors.New(said.Remark)
		}
		b.Options = append(b.Options, said.Options...)
		return nil
	}
	b.Snippet += source(d)
	return nil
}

// pass reads who is asked.
func (b *passageBuilder) pass(text string, values map[string]string) (err error) {
	if b.url, b.Upstream, err = parsePass(text, values); b.TLS {
		b.Options = append(b.Options, Setting{"backend-protocol", "HTTPS"})
	}
	return err
}

// passageOptions are the directives of such a location that are options of its route.
func passageOptions() map[string]directive {
	all := map[string]directive{
		"proxy_next_upstream":         {Fixed, func(args []string) Advice { return Use("proxy-next-upstream", strings.Join(args, " ")) }},
		"proxy_next_upstream_tries":   {Fixed, First("proxy-next-upstream-tries")},
		"proxy_next_upstream_timeout": {Fixed, Seconds("proxy-next-upstream-timeout")},
		"proxy_ssl_verify":            {Fixed, First("proxy-ssl-verify")},
		"client_body_buffer_size":     {Fixed, First("client-body-buffer-size")},
		"client_max_body_size":        {Fixed, First("proxy-body-size")},
		"proxy_request_buffering":     {Fixed, First("proxy-request-buffering")},
	}
	for _, what := range []string{"connect", "send", "read"} {
		all["proxy_"+what+"_timeout"] = directive{Fixed, Seconds("proxy-" + what + "-timeout")}
	}
	return all
}

// lead says where in the Service the path leads, and what becomes of redirects.
func (b *passageBuilder) lead() error {
	from, to := b.url.origin+"/", "/"
	switch uri := b.url.uri; {
	case b.url.asked:
		b.To = &filter.UpstreamPath{Asked: true}
	case uri == "":
	case b.url.filled:
		b.Filled = uri
	case !b.isPrefix:
		return errors.New("nginx takes no path in proxy_pass where the location has a pattern or a name")
	default:
		b.To = &filter.UpstreamPath{Location: b.Path, To: uri}
		from, to = b.url.origin+uri, b.Path
	}
	if !b.kept && !b.url.filled {
		b.Options = append(b.Options, Setting{"proxy-redirect-from", from}, Setting{"proxy-redirect-to", to})
	}
	return nil
}

// quote is a word as nginx reads it back.
func quote(word string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(word) + `"`
}

// source is a directive as it was written, with its block.
func source(d *nginxconf.Directive) string {
	if d.Block == nil {
		return strings.TrimSuffix(d.Text, ";") + ";\n"
	}
	text := strings.TrimSuffix(strings.TrimSpace(d.Text), "{") + " {\n"
	for i := range d.Block {
		text += source(&d.Block[i])
	}
	return text + "}\n"
}

// withoutSlash are the places of passages whose path ends in a slash for that without it, as in
// nginx where nothing else has it. Clients are sent to the one with the slash.
func withoutSlash(places []filter.ScriptPlace) (more []filter.ScriptPlace) {
	for i := range places {
		p := &places[i]
		path, ends := strings.CutSuffix(p.Path, "/")
		taken := slices.ContainsFunc(places, func(o filter.ScriptPlace) bool { return o.Path == path })
		if p.Passage() > 0 && ends && path != "" && !p.Exact && !taken {
			more = append(more, filter.ScriptPlace{Path: path, Exact: true, Yields: true, Internal: p.Internal, Steps: p.Steps})
		}
	}
	return more
}

// checkPassages refuses what stands in one and is not understood, so that the whole is not obeyed.
func (w *scripter) checkPassages([]nginxconf.Directive) error {
	for _, p := range w.passages {
		if err := w.check(p); err != nil {
			return fmt.Errorf("in location %s, %w", printable.Cut(p.Path, MaxQuoted), err)
		}
	}
	return nil
}

func (w *scripter) check(p Passage) error {
	known := w.known.Clone()
	_, err := Script(p.Snippet, false, known)
	if err == nil && p.Filled != "" {
		_, err = known.ParsePath(p.Filled)
	}
	return err
}

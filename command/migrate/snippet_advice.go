package migrate

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"quayside.io/cluster/printable"
	"quayside.io/proxy/filter"
	"quayside.io/proxy/nginxconf"
	"quayside.io/proxy/route"
)

// setting is a key of ours with its value.
type setting struct{ key, value string }

// advice is what does here what a directive did.
type advice struct {
	options []setting // annotations
	global  []setting // of proxy.config in the chart's values, for all Ingresses
	remark  string    // beside them, or why there are none
	needed  bool      // remark says that nothing has to be written
}

func use(pairs ...string) (a advice) {
	for i := 0; i < len(pairs); i += 2 {
		a.options = append(a.options, setting{pairs[i], pairs[i+1]})
	}
	return a
}

func useForAll(key, value string) advice { return advice{global: []setting{{key, value}}} }

func none(format string, args ...any) advice { return advice{remark: fmt.Sprintf(format, args...)} }

func needless(why string) advice { return advice{remark: why, needed: true} }

// but adds a remark to advice that names options.
func (a advice) but(remark string) advice {
	if len(a.options)+len(a.global) > 0 {
		a.remark = remark
	}
	return a
}

// and is a with what b asks for, too: of options that take lines, more lines.
func (a advice) and(b advice) advice {
	a.options = slices.Clone(a.options)
	for _, o := range b.options {
		at := slices.IndexFunc(a.options, func(have setting) bool { return have.key == o.key })
		switch {
		case at >= 0 && slices.Contains(lineKeys(), o.key):
			a.options[at].value += "\n" + o.value
		case !slices.Contains(a.options, o):
			a.options = append(a.options, o)
		}
	}
	a.global = append(a.global, b.global...)
	if !strings.Contains(a.remark, b.remark) {
		a.remark = strings.TrimPrefix(a.remark+"; "+b.remark, "; ")
	}
	return a
}

// String says what to write.
func (a advice) String() string {
	var parts []string
	for _, o := range a.options {
		parts = append(parts, fmt.Sprintf("%s%s: %q", route.OwnPrefix, o.key, o.value))
	}
	for _, o := range a.global {
		parts = append(parts, fmt.Sprintf("proxy.config in the chart's values, %s: %q", o.key, o.value))
	}
	said := strings.Join(parts, ", ")
	switch {
	case a.needed:
		return "nothing to write: " + a.remark
	case said == "":
		return "has no equivalent: " + a.remark
	case a.remark != "":
		return said + " (" + a.remark + ")"
	}
	return said
}

// maxQuoted is how much of a directive a note repeats.
const maxQuoted = 120

// quoted is a directive as notes show it.
func quoted(d *nginxconf.Directive) string {
	return printable.Cut(strings.TrimSuffix(d.Text, ";"), maxQuoted)
}

// snippetNotes says line by line what does here what a snippet did.
func snippetNotes(key, text string) (notes []string) {
	list, err := nginxconf.Parse(text)
	allowed := false
	for _, d := range list {
		said := adviceOn(&d, allowed)
		allowed = allowed || d.Name() == "allow"
		notes = append(notes, fmt.Sprintf("%s line %d, %s: %s", key, d.Line, printable.Cut(d.Text, maxQuoted), said))
	}
	if err != nil {
		notes = append(notes, fmt.Sprintf("%s is not understood from here on, so nothing of the rest is named: %v", key, err))
	}
	return notes
}

// adviceOn returns what replaces one directive. What depends on variables depends on
// what only nginx knows.
func adviceOn(d *nginxconf.Directive, allowed bool) advice {
	f, known := advices()[d.Name()]
	switch {
	case !known && strings.Contains(d.Name(), "_by_lua"):
		return none("Lua is never executed")
	case !known:
		return none("no option does what %s does", printable.Cut(d.Name(), maxQuoted))
	case d.Name() == "location":
		return placeAdvice(d)
	case d.Name() == "if":
		return ifAdvice(d)
	case d.Block != nil:
		return none("its block is not read")
	case len(d.Args()) == 0:
		return none("it has no arguments")
	case d.Name() == "deny":
		return denyAdvice(d.Args(), allowed)
	}
	for _, arg := range d.Args() {
		if err := fills(d.Name(), arg); err != nil {
			return none("%v", err)
		}
	}
	return f(d.Args())
}

// fills says why a variable in an argument of a directive would not be filled in here.
func fills(name, arg string) error {
	if !strings.Contains(arg, "$") {
		return nil
	}
	switch name {
	case "rewrite", "auth_request_set": // a pattern is none; and those that have errors of their own
		return nil
	case "return", "add_header", "more_set_headers", "more_set_input_headers", "proxy_set_header", "grpc_set_header", "proxy_redirect", "proxy_cookie_path", "proxy_cookie_domain":
		_, err := filter.ParseTemplate(arg)
		return err
	}
	return fmt.Errorf("%s has a variable, and values are fixed here", printable.Cut(arg, maxQuoted))
}

// advices are the directives that people write, one function each.
func advices() map[string]func(args []string) advice {
	all := map[string]func(args []string) advice{
		"if": nil, "deny": nil, "location": nil,
		"add_header": headerAdvice, "more_set_headers": moreHeadersAdvice, "proxy_hide_header": hideAdvice, "more_clear_headers": hideAdvice,
		"more_set_input_headers": moreInputAdvice, "more_clear_input_headers": clearInputAdvice, "expires": expiresAdvice, "default_type": typeAdvice,
		"grpc_set_header": requestHeaderAdvice, "grpc_hide_header": hideAdvice,
		"grpc_read_timeout": seconds("proxy-read-timeout"), "grpc_send_timeout": seconds("proxy-send-timeout"), "grpc_connect_timeout": seconds("proxy-connect-timeout"),
		"return": returnAdvice, "rewrite": rewriteAdvice, "proxy_set_header": requestHeaderAdvice, "allow": allowAdvice,
		"client_max_body_size":  first("proxy-body-size"),
		"proxy_read_timeout":    seconds("proxy-read-timeout"),
		"proxy_send_timeout":    seconds("proxy-send-timeout"),
		"proxy_connect_timeout": seconds("proxy-connect-timeout"),
		"proxy_next_upstream":   func(args []string) advice { return use("proxy-next-upstream", strings.Join(args, " ")) },
		"proxy_cookie_path":     cookieAdvice("proxy-cookie-path"),
		"proxy_cookie_domain":   cookieAdvice("proxy-cookie-domain"),
		"proxy_cookie_flags":    cookieFlagsAdvice,
		"proxy_redirect":        locationAdvice,
		"satisfy":               first("satisfy"),
		"server_name":           func(args []string) advice { return use("server-alias", strings.Join(args, ",")) },
		"auth_request_set":      authAnswerAdvice,
		"auth_request":          func([]string) advice { return use("auth-url", "").but("the address of the service that is asked") },
		"auth_basic": func([]string) advice {
			return use("auth-type", "basic", "auth-secret", "").but("the Secret with the users")
		},
		"error_page": func(args []string) advice {
			return use("custom-http-errors", strings.Join(slices.DeleteFunc(slices.Clone(args[:len(args)-1]), func(s string) bool { return strings.HasPrefix(s, "=") }), ","), "default-backend", "").but("a Service that answers them")
		},
		"gzip":                    onOff("use-gzip"),
		"brotli":                  onOff("enable-brotli"),
		"gzip_types":              func(args []string) advice { return useForAll("gzip-types", strings.Join(args, " ")) },
		"gzip_comp_level":         func(args []string) advice { return useForAll("gzip-level", args[0]) },
		"gzip_min_length":         func(args []string) advice { return useForAll("gzip-min-length", args[0]) },
		"proxy_pass":              func([]string) advice { return none("the Service is what a rule names as its backend") },
		"limit_rate":              kibibytes("limit-rate"),
		"limit_rate_after":        kibibytes("limit-rate-after"),
		"proxy_buffering":         streamed,
		"proxy_request_buffering": gathered,
		"proxy_buffers":           streamed,
		"proxy_busy_buffers_size": streamed,
		"client_body_buffer_size": first("client-body-buffer-size"),
		"proxy_http_version":      httpVersion,
		"access_log":              logged,
		"ssl_ciphers":             first("ssl-ciphers"),
		"ssl_protocols":           func(args []string) advice { return useForAll("ssl-protocols", strings.Join(args, " ")) },
		"proxy_ssl_verify":        verified,
		"proxy_ssl_verify_depth":  first("proxy-ssl-verify-depth"),
		"proxy_ssl_name":          first("proxy-ssl-name"),
		"proxy_ssl_server_name":   first("proxy-ssl-server-name"),
		"proxy_ssl_ciphers":       first("proxy-ssl-ciphers"),
		"proxy_ssl_protocols":     func(args []string) advice { return use("proxy-ssl-protocols", strings.Join(args, " ")) },
		"modsecurity":             judged,
		"keepalive_timeout":       func(args []string) advice { return useForAll("keep-alive", args[0]) },
		"client_header_timeout":   func(args []string) advice { return useForAll("client-header-timeout", args[0]) },
		"client_body_timeout":     func(args []string) advice { return useForAll("client-body-timeout", args[0]) },
		"large_client_header_buffers": func(args []string) advice {
			return useForAll("large-client-header-buffers", strings.Join(args, " "))
		},
		"proxy_max_temp_file_size": streamed,
		"keepalive_requests":       func(args []string) advice { return useForAll("keep-alive-requests", args[0]) },
		"set_real_ip_from": func(args []string) advice {
			return useForAll("proxy-real-ip-cidr", args[0]).but("with all of them in one list, and use-forwarded-headers")
		},
		"real_ip_header": func(args []string) advice {
			return useForAll("forwarded-for-header", args[0]).but("with use-forwarded-headers")
		},
		"limit_req": func([]string) advice {
			return none("limit-rps, limit-rpm and limit-burst-multiplier say how much a client may ask")
		},
		"limit_conn":                    func([]string) advice { return none("limit-connections says how many a client may have") },
		"proxy_ssl_certificate":         ownCertificate,
		"proxy_ssl_certificate_key":     ownCertificate,
		"proxy_ssl_trusted_certificate": ownCertificate,
	}
	for name, why := range unneeded() {
		all[name] = func([]string) advice { return needless(why) }
	}
	return all
}

// unneeded are directives for which nothing has to be written, whatever their arguments.
func unneeded() map[string]string {
	return map[string]string{
		"auth_basic_user_file":      "auth-secret names the users",
		"log_not_found":             "there is no log of missing files",
		"server_tokens":             "no version is ever told",
		"proxy_buffer_size":         "a response's head may have 256k",
		"underscores_in_headers":    "fields with underscores pass",
		"proxy_pass_header":         "the backend's fields are passed on",
		"proxy_ignore_headers":      "no field of a backend's steers the proxy",
		"proxy_ssl_session_reuse":   "sessions of TLS are taken up again",
		"proxy_intercept_errors":    "custom-http-errors names the statuses",
		"real_ip_recursive":         "the last address is taken that is not trusted",
		"chunked_transfer_encoding": "bodies are framed as the other side understands it",
	}
}

func verified(args []string) advice {
	if args[0] == "off" {
		return needless("a backend's certificate is verified where proxy-ssl-verify says so")
	}
	return use("proxy-ssl-verify", args[0])
}

func ownCertificate([]string) advice {
	return use("proxy-ssl-secret", "").but("NAMESPACE/NAME of the Secret with tls.crt, tls.key and ca.crt")
}

func streamed([]string) advice { return needless("bodies are streamed, and responses never gathered") }

func gathered(args []string) advice {
	if args[0] != "on" {
		return needless("requests are streamed unless an option asks for more")
	}
	return use("proxy-request-buffering", "on")
}

func httpVersion(args []string) advice {
	if args[0] != "1.0" {
		return needless("backends are spoken to in HTTP/1.1, with connections that stay")
	}
	return use("proxy-http-version", "1.0")
}

func logged(args []string) advice {
	if args[0] != "off" {
		return none("the log goes to the standard output, see proxy.accessLog in the chart's values")
	}
	return use("enable-access-log", "false")
}

func judged(args []string) advice {
	if args[0] != "on" {
		return needless("it is off unless proxy.config says otherwise")
	}
	return use("enable-modsecurity", "true").but("where the chart's values have proxy.modsecurity")
}

// kibibytes reads a size of nginx.
func kibibytes(key string) func([]string) advice {
	return func(args []string) advice {
		text, unit := strings.ToLower(args[0]), int64(1)
		for suffix, n := range map[string]int64{"k": 1 << 10, "m": 1 << 20} {
			if rest, ok := strings.CutSuffix(text, suffix); ok {
				text, unit = rest, n
			}
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 || n > 1<<40/unit || n*unit%1024 != 0 {
			return none("%s is not a size in whole KiB", printable.Cut(args[0], maxQuoted))
		}
		return use(key, strconv.FormatInt(n*unit/1024, 10))
	}
}

func first(key string) func([]string) advice {
	return func(args []string) advice { return use(key, args[0]) }
}

func onOff(key string) func([]string) advice {
	return func(args []string) advice {
		if args[0] != "on" {
			return needless("it is off unless proxy.config says otherwise")
		}
		return useForAll(key, "true").but("for all Ingresses")
	}
}

// seconds is an option that takes a time in seconds.
func seconds(key string) func([]string) advice {
	return func(args []string) advice {
		n, ok := secondsOf(args[0])
		if !ok {
			return none("%s is not a time in whole seconds", printable.Cut(args[0], maxQuoted))
		}
		return use(key, strconv.Itoa(n))
	}
}

// secondsOf reads a time of nginx in whole seconds, of a year at most.
func secondsOf(text string) (int, bool) {
	unit := 1
	for suffix, n := range map[string]int{"s": 1, "m": 60, "h": 3600, "d": 86400} {
		if rest, ok := strings.CutSuffix(text, suffix); ok {
			text, unit = rest, n
			break
		}
	}
	n, err := strconv.Atoi(text)
	return n * unit, err == nil && 0 <= n && n <= 366*86400/unit
}

// authAnswerAdvice is about what a service that is asked by auth-url says.
func authAnswerAdvice(args []string) advice {
	from := strings.ToLower(args[len(args)-1])
	if strings.HasPrefix(from, "$upstream_cookie_") || from == "$upstream_http_set_cookie" {
		return needless("every Set-Cookie of auth-url is passed on")
	}
	if a, ok := route.ParseAuthAnswer(&nginxconf.Directive{Words: append([]string{"auth_request_set"}, args...)}); ok {
		return use("auth-response-headers", title(a.Field)).but("with all of them in one list; the backend is sent each under its own name")
	}
	return none("only fields of the answer are passed on")
}

func allowAdvice(args []string) advice {
	if args[0] == "all" {
		return needless("everybody passes who is not refused")
	}
	if !isPrefix(args[0]) {
		return none("%s is not an address", printable.Cut(args[0], maxQuoted))
	}
	return use("allowlist-source-range", args[0]).but("with all that is allowed in one list")
}

func denyAdvice(args []string, allowed bool) advice {
	switch {
	case args[0] == "all" && allowed:
		return needless("allowlist-source-range refuses all others")
	case args[0] == "all":
		return use("denylist-source-range", "0.0.0.0/0,::/0")
	case !isPrefix(args[0]):
		return none("%s is not an address", printable.Cut(args[0], maxQuoted))
	case allowed:
		return none("denylist-source-range comes before allowlist-source-range, and here an allow comes first")
	}
	return use("denylist-source-range", args[0]).but("with all that is denied in one list")
}

func isPrefix(s string) bool {
	_, err := netip.ParsePrefix(s)
	_, err2 := netip.ParseAddr(s)
	return err == nil || err2 == nil
}

func locationAdvice(args []string) advice {
	switch {
	case args[0] == "off" || args[0] == "default":
		return needless("Location is passed on as it is")
	case len(args) < 2:
		return none("the second half is missing")
	}
	return use("proxy-redirect-from", args[0], "proxy-redirect-to", args[1])
}

// cookieAdvice is about an attribute of cookies, with what people add behind it.
func cookieAdvice(key string) func(args []string) advice {
	return func(args []string) advice {
		last := args[len(args)-1]
		if strings.ContainsAny(last, "; ") {
			last = strconv.Quote(last)
		}
		return use(key, strings.Join(append(slices.Clone(args[:len(args)-1]), last), " "))
	}
}

// ifAdvice is about what people test for most.
func ifAdvice(d *nginxconf.Directive) advice {
	variable, operator, value := condition(d.Args())
	body := none("nothing stands in it")
	if len(d.Block) == 1 && d.Block[0].Name() != "if" {
		body = adviceOn(&d.Block[0], false)
	}
	redirects := len(body.options) > 0 && strings.HasSuffix(body.options[0].key, "-redirect")
	line, denies := deniedRequest(d)
	switch {
	case denies:
		return use("denied-requests", line)
	case len(d.Block) > 1:
		return none("it does several things at once: write an if for each")
	case (variable == "$host" || variable == "$http_host") && operator == "=" && redirects:
		return body.but("in an Ingress of its own for the host " + printable.Cut(value, maxQuoted))
	case (variable == "$scheme" || variable == "$http_x_forwarded_proto" || variable == "$https") && redirects:
		return use("force-ssl-redirect", "true")
	case variable == "$request_method" && value == "OPTIONS":
		return use("enable-cors", "true").but("which answers preflight requests")
	}
	return none("a condition about %s cannot be asked here", printable.Cut(cmp.Or(variable, "nothing"), maxQuoted))
}

// condition takes apart what stands in the parentheses of an if.
func condition(args []string) (variable, operator, value string) {
	words := slices.Clone(args)
	if len(words) > 0 {
		words[0] = strings.TrimPrefix(words[0], "(")
		words[len(words)-1] = strings.TrimSuffix(words[len(words)-1], ")")
	}
	if len(words) > 1 && words[0] == "" {
		words = words[1:]
	}
	if len(words) > 1 && words[len(words)-1] == "" {
		words = words[:len(words)-1]
	}
	words = append(words, "", "", "")
	return words[0], words[1], words[2]
}

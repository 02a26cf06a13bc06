package snippet

import (
	"slices"
	"strconv"
	"strings"

	"quayside.io/cluster/printable"
	"quayside.io/proxy/filter"
	"quayside.io/proxy/nginxconf"
)

// MaxQuoted is how much of a directive notes and errors repeat, in bytes.
const MaxQuoted = 120

// Quoted is a directive as they show it.
func Quoted(d *nginxconf.Directive) string {
	return printable.Cut(strings.TrimSuffix(d.Text, ";"), MaxQuoted)
}

// On returns what does here what a directive does, and false where it is not about fields,
// cookies or the log.
func On(d *nginxconf.Directive) (a Advice, known bool) { return on(plain(), d) }

func on(table map[string]directive, d *nginxconf.Directive) (a Advice, known bool) {
	f, known := table[d.Name()]
	if !known {
		return Advice{}, false
	}
	return Read(d, f.variables, f.advice), true
}

// Variables says which variables the arguments of a directive may have.
type Variables int

// These are none at all, those that an option fills in, and whatever its advice says.
const (
	Fixed Variables = iota
	Filled
	Unread
)

// Read returns what f says of the arguments of a directive, if it has any, and no block.
func Read(d *nginxconf.Directive, variables Variables, f func(args []string) Advice) Advice {
	switch {
	case d.Block != nil:
		return None("its block is not read")
	case len(d.Args()) == 0:
		return None("it has no arguments")
	}
	for _, arg := range d.Args() {
		if !strings.Contains(arg, "$") || variables == Unread {
			continue
		}
		if variables == Fixed {
			return None("%s has a variable, and values are fixed here", printable.Cut(arg, MaxQuoted))
		}
		if _, err := filter.ParseTemplate(arg); err != nil {
			return None("%v", err)
		}
	}
	return f(d.Args())
}

// directive is what the arguments of one come to.
type directive struct {
	variables Variables
	advice    func(args []string) Advice
}

// plain are the directives that the package knows.
func plain() map[string]directive {
	all := map[string]directive{
		"add_header": {Filled, headerAdvice}, "more_set_headers": {Filled, moreHeadersAdvice}, "proxy_hide_header": {Fixed, hideAdvice}, "more_clear_headers": {Fixed, hideAdvice},
		"more_set_input_headers": {Filled, moreInputAdvice}, "more_clear_input_headers": {Fixed, clearInputAdvice}, "expires": {Fixed, expiresAdvice}, "default_type": {Fixed, typeAdvice},
		"proxy_set_header": {Unread, requestHeaderAdvice}, "grpc_set_header": {Unread, requestHeaderAdvice}, "grpc_hide_header": {Fixed, hideAdvice},
		"proxy_cookie_path":        {Filled, cookieAdvice("proxy-cookie-path")},
		"proxy_cookie_domain":      {Filled, cookieAdvice("proxy-cookie-domain")},
		"proxy_cookie_flags":       {Fixed, cookieFlagsAdvice},
		"auth_request_set":         {Unread, answerAdvice},
		"access_log":               {Unread, logged},
		"set_escape_uri":           {Unread, escaped},
		"proxy_ssl_name":           {Unread, certificateName},
		"proxy_ssl_server_name":    {Fixed, First("proxy-ssl-server-name")},
		"proxy_http_version":       {Fixed, httpVersion},
		"proxy_ssl_verify":         {Fixed, verified},
		"proxy_cache":              {Fixed, kept},
		"proxy_store":              {Fixed, offAlone("nothing is kept here")},
		"proxy_pass_header":        {Fixed, passed},
		"proxy_ignore_headers":     {Fixed, ignored},
		"proxy_buffering":          {Fixed, streamed},
		"proxy_buffers":            {Fixed, streamed},
		"proxy_busy_buffers_size":  {Fixed, streamed},
		"proxy_max_temp_file_size": {Fixed, streamed},

		"large_client_header_buffers": {Fixed, heads},
		"server_name":                 {Fixed, aliases},
		"proxy_ssl_protocols":         {Fixed, joined("proxy-ssl-protocols")},
		"limit_rate":                  {Fixed, kibibytes("limit-rate")},
		"limit_rate_after":            {Fixed, kibibytes("limit-rate-after")},
		"ssl_protocols":               {Fixed, func(args []string) Advice { return UseForAll("ssl-protocols", strings.Join(args, " ")) }},
		"keepalive_timeout":           {Fixed, ofProxy("keep-alive")},
		"keepalive_requests":          {Fixed, ofProxy("keep-alive-requests")},
		"client_header_timeout":       {Fixed, ofProxy("client-header-timeout")},
		"client_body_timeout":         {Fixed, ofProxy("client-body-timeout")},
		"ignore_invalid_headers":      {Fixed, invalidFields},
	}
	for _, name := range []string{"valid", "key", "use_stale", "lock", "lock_age", "lock_timeout", "methods", "min_uses", "background_update", "revalidate", "convert_head", "max_range_offset"} {
		all["proxy_cache_"+name] = directive{Unread, func([]string) Advice { return Needless("nothing is kept here") }}
	}
	for name, why := range unneeded() {
		all[name] = directive{Unread, func([]string) Advice { return Needless(why) }}
	}
	return all
}

// unneeded are directives for which nothing has to be written, whatever their arguments.
func unneeded() map[string]string {
	return map[string]string{
		"auth_basic_user_file":           "auth-secret names the users",
		"proxy_cache_bypass":             "nothing is kept here",
		"proxy_no_cache":                 "nothing is kept here",
		"aio":                            "it is about how nginx writes",
		"directio":                       "it is about how nginx writes",
		"output_buffers":                 "it is about how nginx writes",
		"postpone_output":                "it is about how nginx writes",
		"reset_timedout_connection":      "it is about how nginx writes",
		"proxy_socket_keepalive":         "connections are kept alive by the kernel",
		"http2_push_preload":             "no browser takes pushes any more",
		"sub_filter_last_modified":       "a page that is changed has no Last-Modified",
		"tcp_nodelay":                    "it is about how nginx writes",
		"tcp_nopush":                     "it is about how nginx writes",
		"sendfile":                       "it is about how nginx writes",
		"port_in_redirect":               "redirects name a port where use-port-in-redirects says so",
		"absolute_redirect":              "a redirect to a path keeps the host that the client asked",
		"resolver":                       "names are resolved as in every pod",
		"etag":                           "it is about files of nginx's own",
		"if_modified_since":              "it is about files of nginx's own",
		"rewrite_log":                    "there is no engine of rewrites",
		"log_not_found":                  "there is no log of missing files",
		"server_tokens":                  "no version is ever told",
		"proxy_buffer_size":              "a response's head may have 256k",
		"client_header_buffer_size":      "heads have as much room as they need, up to large-client-header-buffers",
		"underscores_in_headers":         "fields with underscores pass",
		"proxy_headers_hash_max_size":    "fields are not kept in tables of a size",
		"proxy_headers_hash_bucket_size": "fields are not kept in tables of a size",
		"proxy_ssl_session_reuse":        "sessions of TLS are taken up again",
		"proxy_intercept_errors":         "custom-http-errors, or error_page, names the statuses",
		"chunked_transfer_encoding":      "bodies are framed as the other side understands it",
	}
}

func streamed([]string) Advice { return Needless("bodies are streamed, and responses never gathered") }

func passed(args []string) Advice {
	if len(args[0]) >= len(steering) && strings.EqualFold(args[0][:len(steering)], steering) {
		return None("clients are not shown what steers the proxy")
	}
	return Needless("the backend's fields are passed on")
}

func ignored(args []string) Advice {
	for _, name := range args {
		if strings.EqualFold(name, steering+"Redirect") || strings.EqualFold(name, steering+"Limit-Rate") {
			return None("%s of a backend is obeyed", name)
		}
	}
	return Needless("no such field of a backend's steers the proxy")
}

// steering is how the fields begin by which backends steer nginx.
const steering = "X-Accel-"

// offAlone is for what does not exist here, so that switching it off needs nothing.
func offAlone(why string) func([]string) Advice {
	return func(args []string) Advice {
		if args[0] != "off" {
			return None("%s", why)
		}
		return Needless(why)
	}
}

func verified(args []string) Advice {
	if args[0] == "off" {
		return Needless("certificates of backends are verified where proxy-ssl-verify says so")
	}
	return Use("proxy-ssl-verify", args[0])
}

// escaped is about a variable that nginx has by another module.
func escaped(args []string) Advice {
	if !slices.Equal(args, []string{"$escaped_request_uri", "$request_uri"}) {
		return None("nothing else is escaped")
	}
	return Needless("$escaped_request_uri is always known")
}

func httpVersion(args []string) Advice {
	if args[0] != "1.0" {
		return Needless("backends are spoken to in HTTP/1.1, with connections that stay")
	}
	return Use("proxy-http-version", "1.0")
}

// heads is about how large heads of requests may be, "NUMBER SIZE": of 32k nothing has to be said.
func heads(args []string) Advice {
	unit, size := 1, strings.ToLower(args[len(args)-1])
	if digits, thousands := strings.CutSuffix(size, "k"); thousands {
		unit, size = 1<<10, digits
	}
	n, err := strconv.Atoi(args[0])
	each, bad := strconv.Atoi(size)
	if most := 32 << 10 / unit; len(args) == 2 && err == nil && bad == nil && 0 < n && 0 < each && n <= most/each {
		return Needless("heads of 32k are taken unasked")
	}
	return UseForAll("large-client-header-buffers", strings.Join(args, " "))
}

func logged(args []string) Advice {
	switch {
	case args[0] == "off":
		return Use("enable-access-log", "false")
	case slices.ContainsFunc(args[1:], func(arg string) bool { return strings.HasPrefix(arg, "if=") && arg != "if=$loggable" }):
		return None("which requests are logged $loggable says, a table of the ConfigMap's http-snippet")
	}
	return Needless("the log goes to the standard output, see proxy.accessLog in the chart's values")
}

// kept is about responses that a proxy keeps. Backends are asked again then, and nothing else
// differs.
func kept(args []string) Advice {
	if args[0] == "off" {
		return Needless("nothing is kept here")
	}
	return Skip("nothing is kept here: each request is the backend's")
}

// ofProxy is an option of the proxy.
func ofProxy(key string) func([]string) Advice {
	return func(args []string) Advice { return UseForAll(key, args[0]) }
}

func invalidFields(args []string) Advice {
	if args[0] != "on" {
		return None("requests with fields that have no valid names are refused")
	}
	return Needless("requests with fields that have no valid names are refused")
}

// kibibytes reads a size of nginx.
func kibibytes(key string) func([]string) Advice {
	return func(args []string) Advice {
		text, unit := strings.ToLower(args[0]), int64(1)
		for suffix, n := range map[string]int64{"k": 1 << 10, "m": 1 << 20} {
			if rest, ok := strings.CutSuffix(text, suffix); ok {
				text, unit = rest, n
			}
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 || n > 1<<40/unit || n*unit%1024 != 0 {
			return None("%s is not a size in whole KiB", printable.Cut(args[0], MaxQuoted))
		}
		return Use(key, strconv.FormatInt(n*unit/1024, 10))
	}
}

// aliases are further names of a host. "_" is nobody's.
func aliases(args []string) Advice {
	names := slices.DeleteFunc(slices.Clone(args), func(name string) bool { return name == "_" })
	if len(names) == 0 {
		return Needless("no host has that name")
	}
	return Use("server-alias", strings.Join(names, ","))
}

// joined is an option that takes all arguments.
func joined(key string) func([]string) Advice {
	return func(args []string) Advice { return Use(key, strings.Join(args, " ")) }
}

// cookieAdvice is about an attribute of cookies, with what people add behind it.
func cookieAdvice(key string) func(args []string) Advice {
	return func(args []string) Advice {
		last := args[len(args)-1]
		if strings.ContainsAny(last, "; ") {
			last = strconv.Quote(last)
		}
		return Use(key, strings.Join(append(slices.Clone(args[:len(args)-1]), last), " "))
	}
}

// certificateName is that of the backend, or the host's.
func certificateName(args []string) Advice {
	if strings.Contains(args[0], "$") && args[0] != "$host" && args[0] != "$server_name" {
		return None("of variables $host and $server_name alone name a certificate")
	}
	return Use("proxy-ssl-name", args[0])
}

// First is an option that takes the first argument.
func First(key string) func([]string) Advice {
	return func(args []string) Advice { return Use(key, args[0]) }
}

// Seconds is an option that takes a time in whole seconds.
func Seconds(key string) func([]string) Advice {
	return func(args []string) Advice {
		n, ok := SecondsOf(args[0])
		if !ok {
			return None("%s is not a time in whole seconds", printable.Cut(args[0], MaxQuoted))
		}
		return Use(key, strconv.Itoa(n))
	}
}

// SecondsOf reads a time of nginx in whole seconds, such as 90, 1h30m or 1y, of ten years at most.
func SecondsOf(text string) (seconds int, ok bool) {
	const day, most = 86400, 3660 * 86400
	add := func(number string, unit int) bool {
		n, err := strconv.ParseUint(number, 10, 32)
		if err != nil || n > uint64(most/unit) {
			return false
		}
		seconds += int(n) * unit
		return seconds <= most
	}
	units := []struct {
		suffix string
		of     int
	}{{"y", 365 * day}, {"M", 30 * day}, {"w", 7 * day}, {"d", day}, {"h", 3600}, {"m", 60}, {"s", 1}}
	ok = text != ""
	for _, unit := range units {
		if number, rest, found := strings.Cut(text, unit.suffix); found && ok {
			ok, text = add(number, unit.of), strings.TrimSpace(rest)
		}
	}
	if ok && text != "" {
		ok = add(text, 1)
	}
	return seconds, ok
}

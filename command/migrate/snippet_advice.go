package migrate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"quayside.io/cluster/printable"
	"quayside.io/proxy/nginxconf"
	"quayside.io/proxy/route"
	"quayside.io/proxy/snippet"
)

type (
	setting = snippet.Setting
	advice  = snippet.Advice
)

// maxQuoted is how much of what was written a note repeats.
const maxQuoted = snippet.MaxQuoted

// saying says what to write.
func saying(a advice) string {
	var parts []string
	for _, o := range a.Options {
		parts = append(parts, fmt.Sprintf("%s%s: %q", route.OwnPrefix, o.Key, o.Value))
	}
	for _, o := range a.Global {
		parts = append(parts, fmt.Sprintf("proxy.config in the chart's values, %s: %q", o.Key, o.Value))
	}
	said := strings.Join(parts, ", ")
	switch {
	case a.Needless:
		return "nothing to write: " + a.Remark
	case said == "":
		return "has no equivalent: " + a.Remark
	case a.Remark != "":
		return said + " (" + a.Remark + ")"
	}
	return said
}

// snippetNotes says line by line what does here what a snippet did.
func snippetNotes(key, text string) (notes []string) {
	list, err := nginxconf.Parse(text)
	allowed, isObeyed := false, snippet.ObeyedOf(list, strings.HasSuffix(key, "server-snippet"))
	for _, d := range list {
		said := adviceOn(&d, allowed)
		allowed = allowed || d.Name() == "allow"
		what, isNone := saying(said), len(said.Options)+len(said.Global) == 0 && !said.Needless
		if isNone && isObeyed(d) {
			what += "; a snippet of it alone is obeyed"
		}
		notes = append(notes, fmt.Sprintf("%s line %d, %s: %s", key, d.Line, printable.Cut(d.Text, maxQuoted), what))
	}
	if err != nil {
		notes = append(notes, fmt.Sprintf("%s is not understood from here on, so nothing of the rest is named: %v", key, err))
	}
	return notes
}

// adviceOn returns what replaces one directive. What depends on variables depends on
// what only nginx knows.
func adviceOn(d *nginxconf.Directive, allowed bool) advice {
	if said, known := snippet.On(d); known {
		return said
	}
	f, known := advices()[d.Name()]
	switch {
	case !known && strings.Contains(d.Name(), "_by_lua"):
		return snippet.None("Lua is never executed")
	case !known:
		return snippet.None("no option does what %s does", printable.Cut(d.Name(), maxQuoted))
	case d.Name() == "location":
		return placeAdvice(d)
	case d.Name() == "if":
		return ifAdvice(d)
	case d.Name() == "deny":
		return snippet.Read(d, snippet.Unread, func(args []string) advice { return denyAdvice(args, allowed) })
	case d.Name() == "rewrite": // in whose pattern a dollar is no variable
		return snippet.Read(d, snippet.Unread, f)
	case d.Name() == "return" || d.Name() == "proxy_redirect":
		return snippet.Read(d, snippet.Filled, f)
	}
	return snippet.Read(d, snippet.Fixed, f)
}

// advices are the directives that people write beside those of package snippet, one function
// each.
func advices() map[string]func(args []string) advice {
	return map[string]func(args []string) advice{
		"if": nil, "deny": nil, "location": nil,
		"grpc_read_timeout": snippet.Seconds("proxy-read-timeout"), "grpc_send_timeout": snippet.Seconds("proxy-send-timeout"), "grpc_connect_timeout": snippet.Seconds("proxy-connect-timeout"),
		"return": returnAdvice, "rewrite": rewriteAdvice, "allow": allowAdvice,
		"client_max_body_size":  snippet.First("proxy-body-size"),
		"proxy_read_timeout":    snippet.Seconds("proxy-read-timeout"),
		"proxy_send_timeout":    snippet.Seconds("proxy-send-timeout"),
		"proxy_connect_timeout": snippet.Seconds("proxy-connect-timeout"),
		"proxy_next_upstream":   func(args []string) advice { return snippet.Use("proxy-next-upstream", strings.Join(args, " ")) },
		"proxy_redirect":        locationAdvice,
		"satisfy":               snippet.First("satisfy"),
		"auth_request": func([]string) advice {
			return snippet.Use("auth-url", "").But("the address of the service that is asked")
		},
		"auth_basic": func([]string) advice {
			return snippet.Use("auth-type", "basic", "auth-secret", "").But("the Secret with the users")
		},
		"error_page": func(args []string) advice {
			return snippet.Use("custom-http-errors", strings.Join(slices.DeleteFunc(slices.Clone(args[:len(args)-1]), func(s string) bool { return strings.HasPrefix(s, "=") }), ","), "default-backend", "").But("a Service that answers them")
		},
		"gzip":                    onOff("use-gzip"),
		"brotli":                  onOff("enable-brotli"),
		"gzip_types":              func(args []string) advice { return snippet.UseForAll("gzip-types", strings.Join(args, " ")) },
		"gzip_comp_level":         func(args []string) advice { return snippet.UseForAll("gzip-level", args[0]) },
		"gzip_min_length":         func(args []string) advice { return snippet.UseForAll("gzip-min-length", args[0]) },
		"proxy_pass":              func([]string) advice { return snippet.None("the Service is what a rule names as its backend") },
		"proxy_request_buffering": gathered,
		"client_body_buffer_size": snippet.First("client-body-buffer-size"),
		"ssl_ciphers":             snippet.First("ssl-ciphers"),
		"proxy_ssl_verify_depth":  snippet.First("proxy-ssl-verify-depth"),
		"proxy_ssl_ciphers":       snippet.First("proxy-ssl-ciphers"),
		"modsecurity":             judged,
		"set_real_ip_from": func(args []string) advice {
			return snippet.UseForAll("proxy-real-ip-cidr", args[0]).But("with all of them in one list, and use-forwarded-headers")
		},
		"real_ip_header": func(args []string) advice {
			return snippet.UseForAll("forwarded-for-header", args[0]).But("with use-forwarded-headers")
		},
		"real_ip_recursive": func([]string) advice { return snippet.Needless("the last address is taken that is not trusted") },
		"limit_req": func([]string) advice {
			return snippet.None("limit-rps, limit-rpm and limit-burst-multiplier say how much a client may ask")
		},
		"limit_conn":                    func([]string) advice { return snippet.None("limit-connections says how many a client may have") },
		"proxy_ssl_certificate":         ownCertificate,
		"proxy_ssl_certificate_key":     ownCertificate,
		"proxy_ssl_trusted_certificate": ownCertificate,
	}
}

func ownCertificate([]string) advice {
	return snippet.Use("proxy-ssl-secret", "").But("NAMESPACE/NAME of the Secret with tls.crt, tls.key and ca.crt")
}

func gathered(args []string) advice {
	if args[0] != "on" {
		return snippet.Needless("requests are streamed unless an option asks for more")
	}
	return snippet.Use("proxy-request-buffering", "on")
}

func judged(args []string) advice {
	if args[0] != "on" {
		return snippet.Needless("it is off unless proxy.config says otherwise")
	}
	return snippet.Use("enable-modsecurity", "true").But("where the chart's values have proxy.modsecurity")
}

func onOff(key string) func([]string) advice {
	return func(args []string) advice {
		if args[0] != "on" {
			return snippet.Needless("it is off unless proxy.config says otherwise")
		}
		return snippet.UseForAll(key, "true").But("for all Ingresses")
	}
}

func allowAdvice(args []string) advice {
	if args[0] == "all" {
		return snippet.Needless("everybody passes who is not refused")
	}
	if !snippet.IsPrefix(args[0]) {
		return snippet.None("%s is not an address", printable.Cut(args[0], maxQuoted))
	}
	return snippet.Use("allowlist-source-range", args[0]).But("with all that is allowed in one list")
}

func denyAdvice(args []string, allowed bool) advice {
	switch {
	case args[0] == "all" && allowed:
		return snippet.Needless("allowlist-source-range refuses all others")
	case args[0] == "all":
		return snippet.Use("denylist-source-range", "0.0.0.0/0,::/0")
	case !snippet.IsPrefix(args[0]):
		return snippet.None("%s is not an address", printable.Cut(args[0], maxQuoted))
	case allowed:
		return snippet.None("denylist-source-range comes before allowlist-source-range, and here an allow comes first")
	}
	return snippet.Use("denylist-source-range", args[0]).But("with all that is denied in one list")
}

func locationAdvice(args []string) advice {
	switch {
	case args[0] == "off" || args[0] == "default":
		return snippet.Needless("Location is passed on as it is")
	case len(args) < 2:
		return snippet.None("the second half is missing")
	}
	return snippet.Use("proxy-redirect-from", args[0], "proxy-redirect-to", args[1])
}

// ifAdvice is about what people test for most.
func ifAdvice(d *nginxconf.Directive) advice {
	variable, _, value := snippet.Condition(d.Args())
	body := snippet.None("nothing stands in it")
	if len(d.Block) == 1 && d.Block[0].Name() != "if" {
		body = adviceOn(&d.Block[0], false)
	}
	redirects := len(body.Options) > 0 && strings.HasSuffix(body.Options[0].Key, "-redirect")
	line, denies := snippet.DeniedRequest(d)
	to, sends := snippet.RedirectedRequest(d)
	switch {
	case denies:
		return snippet.Use("denied-requests", line)
	case (variable == "$scheme" || variable == "$https") && redirects:
		return snippet.Use("force-ssl-redirect", "true")
	case sends:
		return snippet.Use("redirected-requests", to)
	case len(d.Block) > 1:
		return snippet.None("it does several things at once: write an if for each")
	case variable == "$request_method" && value == "OPTIONS":
		return snippet.Use("enable-cors", "true").But("which answers preflight requests")
	}
	return snippet.None("a condition about %s cannot be asked here", printable.Cut(cmp.Or(variable, "nothing"), maxQuoted))
}

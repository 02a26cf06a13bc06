package accesslog

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"quayside.io/proxy/exchange"
)

// lookUp returns what writes a variable, or nil.
func lookUp(name string) (write func(r *Record, of string), of string) {
	for prefix, write := range families() {
		of, ok := strings.CutPrefix(name, prefix)
		if !ok || of == "" || name == "http_host" {
			continue
		}
		if !strings.HasPrefix(prefix, "cookie") && !strings.HasPrefix(prefix, "arg") {
			of = strings.ReplaceAll(of, "_", "-")
		}
		if prefix == "http_" {
			of = exchange.Told(of)
		}
		return write, of
	}
	return variables()[name], ""
}

// isNumber reports whether a variable always is a number.
func isNumber(name string) bool {
	switch name {
	case "status", "body_bytes_sent", "bytes_sent", "request_length", "request_time", "msec":
		return true
	}
	return false
}

// families are the variables that end in a name of the client's.
func families() map[string]func(r *Record, of string) {
	return map[string]func(r *Record, of string){
		"http_": func(r *Record, of string) { r.bytes(r.Exchange.Request.Header.Asked(of)) },
		// What filters have made of the field of the endpoint that answered.
		"upstream_http_": func(r *Record, of string) {
			if len(r.Exchange.Upstream.Tries) > 0 {
				r.bytes(r.Exchange.Response.Header.Get(of))
			}
		},
		"upstream_cookie_": nothing, "upstream_trailer_": nothing, "sent_trailer_": nothing,
		"sent_http_": func(r *Record, of string) { r.bytes(r.Exchange.Response.Header.Get(of)) },
		"arg_":       func(r *Record, of string) { r.bytes(exchange.Argument(r.Exchange.Request.Asked.Target, of)) },
		"cookie_":    func(r *Record, of string) { r.bytes(r.Exchange.Request.Header.Cookie(of)) },
	}
}

// variables are those of nginx and of ingress-nginx that mean something here.
func variables() map[string]func(r *Record, of string) {
	all := map[string]func(r *Record, of string){
		"remote_user": func(r *Record, _ string) { r.user() },
		"remote_addr": func(r *Record, _ string) { r.client() },
		"time_local": func(r *Record, _ string) {
			r.line = r.Ended.AppendFormat(r.line, "02/Jan/2006:15:04:05 -0700")
		},
		"time_iso8601": func(r *Record, _ string) { r.line = r.Ended.AppendFormat(r.line, "2006-01-02T15:04:05-07:00") },
		"msec":         func(r *Record, _ string) { r.seconds(time.Duration(r.Ended.UnixNano())) },
		"status": func(r *Record, _ string) {
			r.line = strconv.AppendInt(r.line, int64(r.Exchange.Response.Status), 10)
		},
		"body_bytes_sent": func(r *Record, _ string) { r.line = strconv.AppendInt(r.line, r.Exchange.Response.Sent, 10) },
		"bytes_sent":      func(r *Record, _ string) { r.line = strconv.AppendInt(r.line, r.sent(), 10) },
		"request_length":  func(r *Record, _ string) { r.line = strconv.AppendInt(r.line, r.Exchange.Request.Size, 10) },
		"request_time":    func(r *Record, _ string) { r.seconds(r.Took) },
		"request_completion": func(r *Record, _ string) {
			if !r.Broken {
				r.text("OK")
			}
		},
		"request_id":               func(r *Record, _ string) { r.bytes(r.Exchange.Request.Header.Get("X-Request-ID")) },
		"opentelemetry_trace_id":   func(r *Record, _ string) { r.trace(3, 32) },
		"opentelemetry_span_id":    func(r *Record, _ string) { r.trace(36, 16) },
		"proxy_upstream_name":      func(r *Record, _ string) { r.text(r.Place.Upstream) },
		"namespace":                func(r *Record, _ string) { r.text(r.Place.Namespace) },
		"ingress_name":             func(r *Record, _ string) { r.text(r.Place.Ingress) },
		"service_name":             func(r *Record, _ string) { r.text(r.Place.Service) },
		"service_port":             func(r *Record, _ string) { r.text(r.Place.Port) },
		"server_name":              func(r *Record, _ string) { r.text(r.Place.Host) },
		"location_path":            func(r *Record, _ string) { r.bytes([]byte(r.Place.Path)) },
		"upstream_addr":            func(r *Record, _ string) { r.tries(addrOf) },
		"upstream_status":          func(r *Record, _ string) { r.tries(statusOf) },
		"upstream_response_time":   func(r *Record, _ string) { r.tries(tookOf) },
		"upstream_header_time":     func(r *Record, _ string) { r.tries(headerOf) },
		"upstream_connect_time":    func(r *Record, _ string) { r.tries(connectOf) },
		"upstream_response_length": func(r *Record, _ string) { r.tries(lengthOf) },
		"proxy_alternative_upstream_name": func(r *Record, _ string) {
			if to := r.Exchange.Upstream.Name; r.Place.Split && to != r.Place.Upstream {
				r.text(to)
			}
		},
	}
	for name, write := range requestVariables() {
		all[name] = write
	}
	for name, write := range connectionVariables() {
		all[name] = write
	}
	for _, name := range silent() {
		all[name] = nothing
	}
	for alias, name := range map[string]string{
		"the_real_ip": "remote_addr", "proxy_protocol_addr": "remote_addr", "req_id": "request_id", "proxy_host": "proxy_upstream_name",
		"document_uri": "uri", "query_string": "args", "pass_access_scheme": "scheme", "best_http_host": "http_host", "pass_server_port": "server_port",
		"proxy_protocol_port": "remote_port",
	} {
		all[alias] = all[name]
	}
	return all
}

// nothing is written of what has a name in nginx, and nothing to say here.
func nothing(*Record, string) {}

// silent are such variables.
func silent() []string {
	return strings.Fields(`server_addr proxy_protocol_server_addr proxy_protocol_server_port connection connection_requests connection_time
		connections_active connections_reading connections_writing connections_waiting pid nginx_version proxy_port
		upstream_cache_status upstream_bytes_received upstream_bytes_sent upstream_queue_time realip_remote_addr realip_remote_port
		ssl_session_id ssl_session_reused ssl_early_data ssl_client_serial ssl_client_fingerprint ssl_alpn_protocol ssl_ciphers ssl_curve ssl_curves
		tcpinfo_rtt tcpinfo_rttvar tcpinfo_snd_cwnd tcpinfo_rcv_space gzip_ratio request_body request_body_file limit_req_status limit_conn_status http3`)
}

// connectionVariables are those about the client's connection.
func connectionVariables() map[string]func(r *Record, of string) {
	shown := func(write func(r *Record, h *exchange.Handshake)) func(*Record, string) {
		return func(r *Record, _ string) {
			if h := r.Exchange.Request.Handshake; h != nil {
				write(r, h)
			}
		}
	}
	certificate := func(of func(c *exchange.Certificate) string) func(*Record, string) {
		return func(r *Record, _ string) {
			if c := r.Exchange.Request.Certificate; c != nil && of(c) != "" {
				r.bytes([]byte(of(c))) // a client has chosen them
			}
		}
	}
	return map[string]func(r *Record, of string){
		"remote_port": func(r *Record, _ string) {
			if c := r.Exchange.Request.Client; c.IsValid() {
				r.line = strconv.AppendUint(r.line, uint64(c.Port()), 10)
			}
		},
		"http2": func(r *Record, _ string) {
			if req := &r.Exchange.Request; req.Protocol == "HTTP/2.0" && req.Handshake != nil {
				r.text("h2")
			} else if req.Protocol == "HTTP/2.0" {
				r.text("h2c")
			}
		},
		"hostname": func(r *Record, _ string) { r.text(r.Hostname) },
		"pipe":     func(r *Record, _ string) { r.text(".") },
		"https": func(r *Record, _ string) {
			if r.blank = true; r.Exchange.Request.TLS {
				r.text("on")
			}
		},
		"ssl_protocol": shown(func(r *Record, h *exchange.Handshake) { r.text(exchange.VersionName(h.Version)) }),
		"ssl_cipher":   shown(func(r *Record, h *exchange.Handshake) { r.text(cipherOf(h)) }),
		"ssl_server_name": shown(func(r *Record, h *exchange.Handshake) {
			if h.ServerName != "" {
				r.bytes([]byte(h.ServerName))
			}
		}),
		"ssl_client_verify": certificate(func(c *exchange.Certificate) string { return c.Verify }),
		"ssl_client_s_dn":   certificate(func(c *exchange.Certificate) string { return c.Subject }),
		"ssl_client_i_dn":   certificate(func(c *exchange.Certificate) string { return c.Issuer }),
	}
}

func cipherOf(h *exchange.Handshake) string {
	if h.Version == 0 {
		return ""
	}
	return exchange.CipherName(h.Cipher)
}

// requestVariables are those about what the client asked for.
func requestVariables() map[string]func(r *Record, of string) {
	return map[string]func(r *Record, of string){
		"request":        func(r *Record, _ string) { r.request() },
		"request_method": func(r *Record, _ string) { r.bytes(r.Exchange.Request.Method) },
		"request_uri":    func(r *Record, _ string) { r.bytes(r.Exchange.Request.Asked.Target) },
		"uri":            func(r *Record, _ string) { r.bytes(r.Exchange.Request.Path) },
		"args": func(r *Record, _ string) {
			if q := exchange.Query(r.Exchange.Request.Asked.Target); len(q) > 0 {
				r.bytes(q)
			}
		},
		"is_args": func(r *Record, _ string) {
			if r.blank = true; len(exchange.Query(r.Exchange.Request.Asked.Target)) > 0 {
				r.text("?")
			}
		},
		"server_protocol": func(r *Record, _ string) { r.text(r.Exchange.Request.Protocol) },
		"server_port":     func(r *Record, _ string) { r.bytes(r.Exchange.Request.Header.Get("X-Forwarded-Port")) },
		"http_host":       func(r *Record, _ string) { r.bytes(r.Exchange.Request.Asked.Host) },
		"host": func(r *Record, _ string) {
			at := len(r.line)
			r.bytes(exchange.HostName(r.Exchange.Request.Asked.Host))
			lower(r.line[at:])
		},
		"scheme": func(r *Record, _ string) {
			if r.Exchange.Request.TLS {
				r.text("https")
			} else {
				r.text("http")
			}
		},
		"content_type": func(r *Record, _ string) { r.bytes(r.Exchange.Request.Header.Get("Content-Type")) },
		"content_length": func(r *Record, _ string) {
			if n := r.Exchange.Request.Length; n > 0 {
				r.line = strconv.AppendInt(r.line, n, 10)
			}
		},
		"proxy_add_x_forwarded_for": func(r *Record, _ string) { r.bytes(r.Exchange.Request.Header.AddedForwardedFor()) },
	}
}

// lower puts letters into lower case. An escape stays what it was.
func lower(b []byte) {
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c | 0x20
		}
	}
}

func (r *Record) client() {
	if a := r.Exchange.Request.Client.Addr(); a.IsValid() {
		r.line = a.AppendTo(r.line)
	}
}

// request is the request line. There is none where the head could not be read.
func (r *Record) request() {
	req := &r.Exchange.Request
	if len(req.Method) == 0 {
		return
	}
	r.bytes(req.Method)
	r.text(" ")
	r.bytes(req.Asked.Target)
	r.text(" ")
	r.text(req.Protocol)
}

// user is that of basic authentication.
func (r *Record) user() {
	var name [exchange.MaxCredentials]byte
	if user := r.Exchange.Request.AppendUser(name[:0]); len(user) > 0 {
		r.bytes(user)
	}
}

// seconds appends a time as nginx does, in seconds to the millisecond.
func (r *Record) seconds(d time.Duration) {
	r.line = exchange.AppendSeconds(r.line, d)
}

// sent is about how many bytes the response had, its head as the handler left it.
func (r *Record) sent() int64 {
	resp := &r.Exchange.Response
	n := resp.Sent + int64(len("HTTP/1.1 200 OK\r\n\r\n"))
	for _, f := range resp.Header.Fields() {
		n += int64(len(f.Name) + len(": ") + len(f.Value) + len("\r\n"))
	}
	return n
}

// trace appends n digits of the traceparent field.
func (r *Record) trace(from, n int) {
	if v := r.Exchange.Request.Header.Get("traceparent"); len(v) >= from+n {
		r.bytes(v[from : from+n])
	}
}

// maxTries is how many endpoints a line tells of.
const maxTries = 16

// tries appends something of each endpoint that was asked.
func (r *Record) tries(of func(r *Record, t *exchange.Try)) {
	all := r.Exchange.Upstream.Tries
	for i := range all[:min(len(all), maxTries)] {
		if i > 0 {
			r.text(", ")
		}
		of(r, &all[i])
	}
}

func addrOf(r *Record, t *exchange.Try)   { r.line = t.Endpoint.AppendTo(r.line) }
func tookOf(r *Record, t *exchange.Try)   { r.seconds(t.Took) }
func lengthOf(r *Record, t *exchange.Try) { r.line = strconv.AppendInt(r.line, t.Received, 10) }

func headerOf(r *Record, t *exchange.Try) {
	if t.Status == 0 {
		r.text("-")
	} else {
		r.seconds(t.Header)
	}
}

func connectOf(r *Record, t *exchange.Try) { r.seconds(t.Connect) }

// statusOf is the answer's status or, as in nginx, what stands for it where there was
// none: nothing if the client did not wait for one.
func statusOf(r *Record, t *exchange.Try) {
	if status := cmp.Or(t.Status, t.Failed); status != 0 {
		r.line = strconv.AppendInt(r.line, int64(status), 10)
	} else {
		r.text("-")
	}
}

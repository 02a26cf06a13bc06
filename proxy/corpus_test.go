package proxy_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
	"quayside.io/proxy/serve"
)

// spoken is a request that can be said in both versions of HTTP.
type spoken struct {
	method, target, host string
	fields               []string // "name: value", in order
	body                 string
	chunked              bool     // the body has no length, and may have trailers
	trailers             []string // of a body without one
	cut                  bool     // the request ends before its body does
}

// lines says it in HTTP/1.1.
func (s spoken) lines() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\n", s.method, s.target)
	if s.host != "none" {
		fmt.Fprintf(&b, "Host: %s\r\n", s.host)
	}
	for _, f := range s.fields {
		b.WriteString(f + "\r\n")
	}
	if !s.chunked {
		return b.String() + "\r\n" + s.body
	}
	b.WriteString("Transfer-Encoding: chunked\r\n\r\n")
	if s.body != "" {
		fmt.Fprintf(&b, "%x\r\n%s\r\n", len(s.body), s.body)
	}
	if s.cut {
		return b.String()
	}
	return b.String() + "0\r\n" + strings.Join(append(s.trailers, "", ""), "\r\n")
}

// overLines asks by HTTP/1.1 and returns the status and what the pod said; 0 for a
// connection that ends without an answer. behind is a request that goes before it in the
// same bytes, and is answered with 200.
func (s spoken) overLines(t *testing.T, addr, behind string) (int, string) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	io.WriteString(c, behind+s.lines())
	if s.cut {
		c.(*net.TCPConn).CloseWrite()
	}
	in := bufio.NewReader(c)
	if behind != "" {
		resp, err := http.ReadResponse(in, nil)
		if err != nil || resp.StatusCode != 200 {
			t.Errorf("the request before it: %v, %v", resp, err)
			return 0, ""
		}
		io.Copy(io.Discard, resp.Body)
	}
	resp, err := http.ReadResponse(in, &http.Request{Method: s.method})
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	said, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(said)
}

// overFrames asks by HTTP/2. What RFC 9113 calls malformed has its stream reset, which
// counts as a 400.
func (s spoken) overFrames(t *testing.T, addr string) (int, string) {
	t.Helper()
	f := dialFramed(t, addr)
	defer f.c.Close()
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	write := func(fields ...string) []byte {
		block.Reset()
		for _, field := range fields {
			name, value, _ := strings.Cut(field[1:], ":")
			enc.WriteField(hpack.HeaderField{Name: strings.ToLower(field[:1] + name), Value: strings.TrimSpace(value)})
		}
		return block.Bytes()
	}
	head := []string{":method:" + s.method, ":scheme:http", ":path:" + s.target}
	if s.host != "none" {
		head = append(head, ":authority:"+s.host)
	}
	ends := s.body == "" && s.trailers == nil && !s.cut
	f.fr.AllowIllegalWrites = true
	fields := write(append(head, s.fields...)...)
	first := min(len(fields), 16<<10) // that fit into one frame
	f.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: first == len(fields), EndStream: ends, BlockFragment: fields[:first]})
	if first < len(fields) {
		f.fr.WriteContinuation(1, true, fields[first:])
	}
	if !ends {
		f.fr.WriteData(1, s.trailers == nil && (!s.cut || !s.chunked), []byte(s.body))
	}
	if s.trailers != nil {
		f.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true, EndStream: true, BlockFragment: write(s.trailers...)})
	}
	if s.cut && s.chunked {
		f.fr.WriteRSTStream(1, http2.ErrCodeCancel)
		return 400, "" // there is nobody to answer
	}
	status, said := 0, ""
	for {
		frame, err := f.fr.ReadFrame()
		if err != nil {
			return 0, err.Error()
		}
		switch frame := frame.(type) {
		case *http2.GoAwayFrame:
			return 0, frame.ErrCode.String()
		case *http2.RSTStreamFrame:
			if status == 0 && frame.ErrCode == http2.ErrCodeProtocol {
				return 400, ""
			}
			return status, said
		case *http2.HeadersFrame:
			fields, err := f.dec.DecodeFull(frame.HeaderBlockFragment())
			if err != nil {
				t.Fatal(err)
			}
			if i := slices.IndexFunc(fields, func(h hpack.HeaderField) bool { return h.Name == ":status" }); i >= 0 {
				if status, _ = strconv.Atoi(fields[i].Value); status < 200 {
					status = 0
				}
			}
			if frame.StreamEnded() {
				return status, said
			}
		case *http2.DataFrame:
			said += string(frame.Data())
			if frame.StreamEnded() {
				return status, said
			}
		}
	}
}

// directAddress is where alsoDirect listens.
const directAddress = "127.0.0.3:0"

// alsoDirect listens without HTTP/2, where simple requests by HTTP/1.1 take a way of their
// own. With it they all go through fasthttp's loop.
func alsoDirect(*snapshot.Cluster) []serve.Listener {
	return []serve.Listener{{Address: directAddress}}
}

// boundDirect returns where a proxy with alsoDirect does so.
func boundDirect(t *testing.T, p *proxy.Proxy) (addr string) {
	t.Helper()
	eventually(t, "it listens without HTTP/2", func() bool {
		for _, l := range p.Listeners() {
			if l.Address == directAddress {
				addr = l.Bound
			}
		}
		return addr != ""
	})
	return addr
}

// What a request is, in spite of the version of HTTP that says it, and of the way that it
// takes through the proxy: the ruling of all front ends is one, and so is what a pod sees
// of what passes.
func TestFrontEndsRuleAlike(t *testing.T) {
	pod := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprintf(w, "%s %s %s", r.Method, r.RequestURI, r.Host)
		if len(body) > 0 {
			fmt.Fprintf(w, " %s", body)
		}
		for _, name := range []string{"X-A", "Cookie", "X-Late", "Te"} {
			if v := append(r.Header.Values(name), r.Trailer.Values(name)...); len(v) > 0 {
				fmt.Fprintf(w, " %s=%q", name, v)
			}
		}
	}))
	t.Cleanup(pod.Close)
	files, p := start(t, func(o *proxy.Options) { o.HTTP2, o.H2C, o.Listeners = true, true, alsoDirect })
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", strings.TrimPrefix(pod.URL, "http://")), ingress("web", "a.example", "/", "web", number))
	addr, direct := bound(p, false), boundDirect(t, p)
	const simple = "GET /simple HTTP/1.1\r\nHost: a.example\r\n\r\n"
	eventually(t, "the route is there", func() bool { st, _ := p.State().(proxy.State); return len(st.Routes) == 1 })
	for name, c := range corpus() {
		t.Run(name, func(t *testing.T) {
			for way, at := range map[string]struct{ addr, behind string }{
				"by HTTP/1.1 where HTTP/2 may come": {addr: addr}, "behind another where HTTP/2 may come": {addr, simple}, "by HTTP/1.1 alone": {addr: direct}, "behind another by HTTP/1.1 alone": {direct, simple},
			} {
				if lines, said := c.spoken.overLines(t, at.addr, at.behind); lines != c.status || c.status == 200 && said != c.sees {
					t.Errorf("%s %d %q, want %d %q", way, lines, said, c.status, c.sees)
				}
			}
			frames, saidInFrames := c.spoken.overFrames(t, addr)
			if frames != c.frames || c.frames == 200 && saidInFrames != c.framesSees {
				t.Errorf("by HTTP/2 %d %q, want %d %q", frames, saidInFrames, c.frames, c.framesSees)
			}
		})
	}
}

type ruling struct {
	spoken
	status int
	sees   string // what the pod does, if it is asked
	// The same by HTTP/2, where that is not so for a reason.
	frames     int
	framesSees string
}

// corpus are requests that are hostile, or unusual.
func corpus() map[string]ruling {
	all := map[string]ruling{}
	get := func(target, host string, fields ...string) spoken {
		return spoken{method: "GET", target: target, host: host, fields: fields}
	}
	post := func(body string, fields ...string) spoken {
		return spoken{method: "POST", target: "/", host: "a.example", fields: fields, body: body}
	}
	with := func(s spoken, trailers ...string) spoken {
		s.chunked, s.trailers = true, trailers
		return s
	}
	add := func(name string, s spoken, status int, sees string) {
		all[name] = ruling{s, status, sees, status, sees}
	}
	corpusOfTargets(add, get)
	corpusOfHosts(add, get)
	for name, length := range map[string]string{
		"signed": "+4", "negative": "-1", "hexadecimal": "0x4", "a list": "4, 4", "letters": "four", "empty": "", "too large": "18446744073709551616", "with a space": "4 4", "a fraction": "4.0",
	} {
		add("length, "+name, post("body", "Content-Length: "+length), 400, "")
	}
	add("length", post("body", "Content-Length: 4"), 200, "POST / a.example body")
	add("length, with zeros", post("body", "Content-Length: 0004"), 200, "POST / a.example body")
	add("length, twice", post("body", "Content-Length: 4", "Content-Length: 4"), 400, "")
	add("length, two", post("body", "Content-Length: 4", "Content-Length: 5"), 400, "")
	add("length, none", with(post("body")), 200, "POST / a.example body")
	add("length, of a GET", get("/", "a.example", "Content-Length: 0"), 200, "GET / a.example")
	add("body, cut", spoken{method: "POST", target: "/", host: "a.example", fields: []string{"Content-Length: 9"}, body: "body", cut: true}, 400, "")
	add("body, cut without a length", spoken{method: "POST", target: "/", host: "a.example", body: "body", chunked: true, cut: true}, 400, "")
	add("trailer", with(post("body", "Trailer: X-Late"), "X-Late: yes"), 200, `POST / a.example body X-Late=["yes"]`)
	// fasthttp refuses some of what may not stand there; a pod sees none of it.
	all["trailer, a length"] = ruling{with(post("body"), "Content-Length: 9"), 400, "", 200, "POST / a.example body"}
	add("trailer, that is dropped", with(post("body"), "If-Match: x", "X-Late: yes"), 200, `POST / a.example body X-Late=["yes"]`)
	add("trailer, Transfer-Encoding", with(post("body"), "Transfer-Encoding: chunked"), 400, "")
	add("trailer, a space in its name", with(post("body"), "X Late: yes"), 400, "")
	add("trailer, NUL", with(post("body"), "X-Late: y\x00s"), 400, "")
	add("field", get("/", "a.example", "X-A: 1", "X-A: 2"), 200, `GET / a.example X-A=["1" "2"]`)
	add("field, empty", get("/", "a.example", "X-A:"), 200, `GET / a.example X-A=[""]`)
	add("field, of bytes beyond ASCII", get("/", "a.example", "X-A: \xe4\xff"), 200, `GET / a.example X-A=["\xe4\xff"]`)
	add("field, NUL", get("/", "a.example", "X-A: a\x00b"), 400, "")
	add("field, a control character", get("/", "a.example", "X-A: a\x01b"), 400, "")
	add("field, DEL", get("/", "a.example", "X-A: a\x7fb"), 400, "")
	add("field, a carriage return", get("/", "a.example", "X-A: a\rb"), 400, "")
	add("field, a space in its name", get("/", "a.example", "X A: b"), 400, "")
	add("field, brackets in its name", get("/", "a.example", "X(A): b"), 400, "")
	add("field, bytes in its name", get("/", "a.example", "X-\xe4: b"), 400, "")
	add("cookies", get("/", "a.example", "Cookie: a=b"), 200, `GET / a.example Cookie=["a=b"]`)
	add("expectation, unknown", post("body", "Content-Length: 4", "Expect: cake"), 400, "")
	add("head, too large", get("/", "a.example", "X-A: "+strings.Repeat("x", 34_000)), 431, "")
	add("head, too many", get("/", "a.example", slices.Repeat([]string{"X-A: " + strings.Repeat("x", 100)}, 400)...), 431, "")
	for _, method := range []string{"CONNECT", "TRACE", "G@T", "GET,POST", "G\xe4T"} {
		s := get("/", "a.example")
		s.method = method
		add("method, "+method, s, 400, "")
	}
	for _, method := range []string{"DELETE", "OPTIONS", "PATCH", "BREW", "get"} {
		s := get("/", "a.example")
		s.method = method
		add("method, "+method, s, 200, method+" / a.example")
	}
	return all
}

func corpusOfTargets(add func(string, spoken, int, string), get func(string, string, ...string) spoken) {
	for target, status := range map[string]int{
		"/": 200, "/a?b=c&d": 200, "/a%20b": 200, "/a;b=c": 200, "//a//b": 200, "/a/./b/../c": 200, "/a%2fb": 200, "/?": 200, "/a??b": 200,
		"/..": 400, "/../a": 400, "/a/../../b": 400, "/%2e%2e/a": 400, "/a%00b": 400, "/a%": 400, "/a%zz": 400, "/a\\b": 400,
		"/a\x01b": 400, "/a\x7fb": 400, "a": 400, "": 400, "*": 400, "?a": 400, "/\xe4": 200, "/a#b": 400, "/a?b=1#&c=2": 400, "/a?#": 400, "/a?b=%23c": 200,
	} {
		add("target, "+target, get(target, "a.example"), status, "GET "+target+" a.example")
	}
}

func corpusOfHosts(add func(string, spoken, int, string), get func(string, string, ...string) spoken) {
	for host, status := range map[string]int{
		"a.example": 200, "A.Example": 200, "a.example:80": 200, "a.example.": 200, "a.example.:8080": 200, "b.example": 404, "192.0.2.1": 404, "[2001:db8::1]": 404, "[2001:db8::1]:80": 404,
		"a.example:": 400, "a.example:x": 400, "a.example:99999": 200, "a.example:80:80": 400, "a.example/x": 400, "a.example?x": 400, "a.example#x": 400, "x@a.example": 400, "a b": 400,
		"a.example,b.example": 400, "": 400, "none": 400, "a\x00b": 400, "\xe4.example": 400, "[]": 400, "[::1": 400, "a[b]": 400, "a\\b": 400, "<a>": 400, "..": 404, "a..example": 404,
	} {
		add("host, "+host, get("/", host), status, "GET / "+host)
	}
}

package serve_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"quayside.io/proxy/serve"
	"quayside.io/proxy/upstream"
)

// Whoever writes a response, it has the pod's fields once, and ours: a date of now, a
// length, a name of who serves it where the pod gives none.
func TestFieldsOfResponses(t *testing.T) {
	const old = "Date: Mon, 02 Jan 2006 15:04:05 GMT\r\nSet-Cookie: a=1; Path=/a\r\nSet-Cookie: a=1; Path=/b\r\n"
	for name, c := range map[string]struct{ method, ours, head, body string }{
		"composed":          {"GET", "", "200 OK\r\nContent-Length: 5\r\n", "hello"},
		"an unusual status": {"GET", "", "299 So What\r\nContent-Length: 5\r\n", "hello"},
		"chunks":            {"GET", "", "404 Not Found\r\nServer: pod\r\nTransfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"},
		"chunks, a trailer": {"GET", "Connection: TE\r\nTE: trailers\r\n", "200 OK\r\nTransfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\nX-Behind: it\r\n\r\n"},
		"large":             {"GET", "", fmt.Sprintf("200 OK\r\nContent-Length: %d\r\n", 20_000), strings.Repeat("x", 20_000)},
		"streamed":          {"GET", "", fmt.Sprintf("200 OK\r\nServer: pod\r\nContent-Length: %d\r\n", 200_000), strings.Repeat("x", 200_000)},
		"head":              {"HEAD", "", "200 OK\r\nContent-Length: 5\r\n", ""},
		"no content":        {"GET", "", "204 No Content\r\n", ""},
		"not modified":      {"GET", "", "304 Not Modified\r\nContent-Length: 5\r\n", ""},
		"the last":          {"GET", "Connection: close\r\n", "200 OK\r\nContent-Length: 5\r\n", "hello"},
	} {
		r := newRig(t, serve.Options{}, upstream.Options{}, answering(t, []byte("HTTP/1.1 "+c.head+old+"\r\n"+c.body)))
		conn := r.dial()
		conn.SetDeadline(time.Now().Add(30 * time.Second))
		in := bufio.NewReader(conn)
		for range 2 {
			io.WriteString(conn, c.method+" / HTTP/1.1\r\nHost: a\r\n"+c.ours+"\r\n")
			res, err := http.ReadResponse(in, &http.Request{Method: c.method})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			body, err := io.ReadAll(res.Body)
			want := c.body
			if strings.HasPrefix(name, "chunks") {
				want = "hello"
			}
			if err != nil || string(body) != want || fmt.Sprint(res.StatusCode) != c.head[:3] {
				t.Errorf("%s: %d, %d bytes, %v", name, res.StatusCode, len(body), err)
			}
			server := "quayside"
			if strings.Contains(c.head, "pod") {
				server = "pod"
			}
			h := res.Header
			date, err := http.ParseTime(h.Get("Date"))
			if len(h["Date"]) != 1 || err != nil || time.Since(date).Abs() > time.Minute || len(h["Set-Cookie"]) != 2 || len(h["Server"]) != 1 || h.Get("Server") != server {
				t.Errorf("%s: %v", name, h)
			}
			if name == "chunks, a trailer" && res.Trailer.Get("X-Behind") != "it" {
				t.Errorf("%s: %v", name, res.Trailer)
			}
			if res.Close != (name == "the last") {
				t.Errorf("%s: close %v", name, res.Close)
			}
			if res.Close {
				if rest, err := io.ReadAll(in); len(rest) > 0 || err != nil {
					t.Errorf("%s: %q, %v", name, rest, err)
				}
				break
			}
		}
		conn.Close()
	}
}

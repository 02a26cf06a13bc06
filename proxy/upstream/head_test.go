package upstream

import (
	"bytes"
	"fmt"
	"io"
	"net/http/httputil"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"quayside.io/proxy/exchange"
)

func TestParseHead(t *testing.T) {
	for _, c := range []struct {
		in   string
		want string // what head, rest and fields print as, or the error
	}{
		{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A:  b \r\n\r\nhello", "{200 1 5 false} hello [Content-Length=5 X-A=b]"},
		{"HTTP/1.0 404\r\n\r\n", "{404 0 -1 false}  []"},
		{"HTTP/1.1 200 \nA: b\n\nrest", "{200 1 -1 false} rest [A=b]"},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n", "{200 1 -1 true}  [Transfer-Encoding=Chunked]"},
		{"HTTP/1.1 200 OK\r\nEmpty:\r\n\r\n", "{200 1 -1 false}  [Empty=]"},
		{"", "incomplete"},
		{"HTTP/1.1 200 OK\r\nA: b\r\n", "incomplete"},
		{"HTTP/2 200 OK\r\n\r\n", "status line"},
		{"HTTP/1.2 200 OK\r\n\r\n", "status line"},
		{"HTTP/1.1 20 OK\r\n\r\n", "status line"},
		{"HTTP/1.1 2000 OK\r\n\r\n", "status line"},
		{"HTTP/1.1 099 OK\r\n\r\n", "status line"},
		{"HTTP/1.1 999 Denied\r\n\r\n", "{999 1 -1 false}  []"},
		{"HTTP/1.1  200 OK\r\n\r\n", "status line"},
		{"\r\nHTTP/1.1 200 OK\r\n\r\n", "status line"},
		{"HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", "folded"},
		{"HTTP/1.1 200 OK\r\nA : b\r\n\r\n", "field is malformed"},
		{"HTTP/1.1 200 OK\r\n: b\r\n\r\n", "field is malformed"},
		{"HTTP/1.1 200 OK\r\nA b\r\n\r\n", "field is malformed"},
		{"HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n", "field is malformed"},
		{"HTTP/1.1 200 OK\r\nA: b\x00c\r\n\r\n", "field is malformed"},
		{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", "two Content-Length"},
		{"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n", "not a number"},
		{"HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n", "not a number"},
		{"HTTP/1.1 200 OK\r\nContent-Length: 9999999999999999999\r\n\r\n", "not a number"},
		{"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n", "not a number"},
		{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", "both"},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "not chunked alone"},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", "not chunked alone"},
		{"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "not chunked alone"},
	} {
		var h exchange.Header
		hd, n, err := parseHead([]byte(c.in), &h)
		got := fmt.Sprintf("%v %s %s", hd, c.in[n:], fieldsOf(&h))
		if err != nil {
			got = err.Error()
		}
		if got != c.want && (err == nil || !strings.Contains(got, c.want)) {
			t.Errorf("%q: got %q, want %q", c.in, got, c.want)
		}
	}
}

func fieldsOf(h *exchange.Header) string {
	var list []string
	for _, f := range h.Fields() {
		list = append(list, string(f.Name)+"="+string(f.Value))
	}
	return "[" + strings.Join(list, " ") + "]"
}

// A head cut anywhere asks for more, and never says something else before.
func TestParseHeadInPieces(t *testing.T) {
	whole := "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: b\r\n\r\n"
	for n := range len(whole) {
		var h exchange.Header
		if _, _, err := parseHead([]byte(whole[:n]), &h); err != errIncomplete {
			t.Errorf("%q: %v, want incomplete", whole[:n], err)
		}
		if len(h.Fields()) != 0 {
			t.Errorf("%q: fields of an incomplete head", whole[:n])
		}
	}
}

// decodeAll feeds the decoder in the given pieces.
func decodeAll(pieces [][]byte) (body, rest []byte, done bool, err error) {
	var c chunks
	for _, p := range pieces {
		for len(p) > 0 && !c.done() {
			data, used, err := c.next(p)
			if err != nil {
				return body, nil, false, err
			}
			body = append(body, data...)
			p = p[used:]
		}
		rest = append(rest, p...)
	}
	return body, rest, c.done(), nil
}

// The twin is the decoder of the standard library.
func TestChunksAgainstTheirTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var wire bytes.Buffer
		w := httputil.NewChunkedWriter(&wire)
		var want []byte
		for range rapid.IntRange(0, 5).Draw(t, "chunks") {
			p := rapid.SliceOfN(rapid.Byte(), 1, 40).Draw(t, "chunk")
			w.Write(p)
			want = append(want, p...)
		}
		w.Close()
		wire.WriteString("\r\n")
		rest := rapid.SliceOfN(rapid.Byte(), 0, 5).Draw(t, "rest")
		all := append(wire.Bytes(), rest...)
		var pieces [][]byte
		for at := 0; at < len(all); {
			n := rapid.IntRange(1, len(all)-at).Draw(t, "piece")
			pieces = append(pieces, all[at:at+n])
			at += n
		}
		body, left, done, err := decodeAll(pieces)
		if err != nil || !done || !bytes.Equal(body, want) || !bytes.Equal(left, rest) {
			t.Fatalf("%q: got %q, %q, %v, %v; want %q, %q", all, body, left, done, err, want, rest)
		}
	})
}

func TestChunksRefused(t *testing.T) {
	for _, in := range []string{
		"x", "\r\n", ";\r\n", "-1\r\n", "0x1\r\n", " 5\r\nhello\r\n", "5\nhello\r\n", "5\r\nhelloX", "5\r\nhello\n", "5\r\nhello\r\r",
		"5;a\nb\r\nhello\r\n", "1234567812345678\r\n", "0\r\n\n", "0\r\nA: b\n\r\n", "5_\r\n", "5\r\r", "5 5\r\nhello\r\n0\r\n\r\n", "5\tx\r\nhello\r\n0\r\n\r\n",
		"1;" + strings.Repeat("x", maxChunkExtra+1) + "\r\n", "0\r\n" + strings.Repeat("A: b\r\n", maxChunkExtra) + "\r\n",
	} {
		if _, _, done, err := decodeAll([][]byte{[]byte(in)}); err == nil {
			t.Errorf("%.40q was taken (done %v)", in, done)
		}
	}
	for _, in := range []string{"5;ext=1\r\nhello\r\n0\r\nTrailer: x\r\n\r\n", "5 \r\nhello\r\n0\r\n\r\n", "5 \t;ext\r\nhello\r\n0\r\n\r\n", "00005\r\nhello\r\n000\r\n\r\n"} {
		if body, _, done, err := decodeAll([][]byte{[]byte(in)}); err != nil || !done || string(body) != "hello" {
			t.Errorf("%q: %q, %v, %v", in, body, done, err)
		}
	}
}

// beforeExtension is white space that RFC 9112 section 7.1.1 says to overlook, and the
// standard library refuses.
var beforeExtension = regexp.MustCompile(`[ \t];`)

// Whatever comes, the two decoders never make different bodies of it.
func FuzzChunks(f *testing.F) {
	f.Add([]byte("5\r\nhello\r\n0\r\n\r\n"))
	f.Add([]byte("5;x\r\nhello\r\n0\r\nA: b\r\n\r\n"))
	f.Add([]byte("5\n"))
	f.Add([]byte("0 ;\r\n\r\n"))
	f.Add([]byte("0 0\r\n00000\r\n0\r\n\r\n0"))
	f.Fuzz(func(t *testing.T, in []byte) {
		body, _, done, err := decodeAll([][]byte{in})
		if err != nil || !done {
			return
		}
		twin, err := io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(in)))
		if err != nil && beforeExtension.Match(in) {
			return
		}
		if err != nil || !bytes.Equal(twin, body) {
			t.Errorf("%q: %q, the standard library reads %q, %v", in, body, twin, err)
		}
	})
}

func FuzzParseHead(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"))
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"))
	f.Add([]byte("HTTP/1.0 700\n\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var h exchange.Header
		hd, n, err := parseHead(in, &h)
		if err != nil {
			return
		}
		if n > len(in) || hd.status < 100 || hd.status > 999 {
			t.Errorf("%q: %+v, %d bytes", in, hd, n)
		}
		for _, field := range h.Fields() {
			if bytes.ContainsAny(field.Value, "\r\n\x00") || bytes.ContainsAny(field.Name, " \t\r\n\x00:") {
				t.Errorf("%q: field %q: %q", in, field.Name, field.Value)
			}
		}
	})
}

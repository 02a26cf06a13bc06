package filter

import (
	"io"
	"strings"
	"testing"

	"quayside.io/proxy/exchange"
)

// answered returns the response that s makes of one.
func answered(s *Settings, header ...Header) *exchange.Response {
	ex := ask("GET a /", "Accept-Encoding: gzip")
	c := Compile(s, Host{}, tools())
	c.Request(ex)
	ex.Response.Status, ex.Response.Length = 200, 4
	ex.Response.Body = io.NopCloser(strings.NewReader("text"))
	for _, h := range header {
		ex.Response.Header.Add(h.Name, h.Value)
	}
	c.Upstream(ex)
	c.Response(ex)
	return &ex.Response
}

// Pages say "URL=" as often as "url=".
func TestWhereARefreshLeads(t *testing.T) {
	s := &Settings{Location: Replacement{From: text("http://inner/"), To: text("https://shop/")}}
	for from, to := range map[string]string{
		"0; url=http://inner/a": "0; url=https://shop/a",
		"0; URL=http://inner/a": "0; URL=https://shop/a",
		"0;Url=http://other/a":  "0;Url=http://other/a",
		"0; ur":                 "0; ur",
		"5":                     "5",
	} {
		if got := string(answered(s, Header{"Refresh", from}).Header.Get("Refresh")); got != to {
			t.Errorf("%q becomes %q, want %q", from, got, to)
		}
	}
}

// A digest of the bytes as they were (RFC 9530) would be wrong of any others.
func TestDigestsStayTrue(t *testing.T) {
	s := &Settings{Compress: &Compress{Gzip: &Compression{Level: 1, Types: []string{"*"}}}}
	for name, want := range map[string]string{"X-Digest": "gzip", "Content-Digest": "", "Repr-Digest": "", "Digest": ""} {
		r := answered(s, Header{name, "sha-256=:AAAA:"})
		if got := string(r.Header.Get("Content-Encoding")); got != want {
			t.Errorf("with %s: Content-Encoding %q, want %q", name, got, want)
		}
		r.Body.Close()
	}
}

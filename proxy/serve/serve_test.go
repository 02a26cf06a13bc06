package serve_test

import (
	"testing"

	"quayside.io/proxy/serve"
	"quayside.io/proxy/upstream"
)

func TestFirst(t *testing.T) {
	r := newRig(t, serve.Options{}, upstream.Options{}, backend(t, echo))
	resp, body := r.get("/a?b")
	t.Log(resp.StatusCode, resp.Header, body)
	t.Log(r.exchange("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET /y HTTP/1.1\r\nHost: a\r\n\r\n"))
}

package h2

import (
	"testing"

	"quayside.io/proxy/exchange"
)

// A response says who serves it, unless it is not to.
func TestServerField(t *testing.T) {
	r := newRig(t, Options{}, func(ex *exchange.Exchange) {
		ex.Response.Unnamed = string(ex.Request.Path) == "/unnamed"
		ex.Answer(200, "ok")
	})
	for path, want := range map[string]string{"/": serverName, "/unnamed": ""} {
		resp, err := r.transport().Get("http://a.example" + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := resp.Header.Get("Server"); got != want {
			t.Errorf("%s: Server is %q, want %q", path, got, want)
		}
	}
}

package h2

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"quayside.io/proxy/exchange"
)

// Who asks by gRPC is answered in its own words, all others in ours.
func TestAnswersToGRPC(t *testing.T) {
	statuses := map[string]int{"/400": 400, "/401": 401, "/403": 403, "/404": 404, "/413": 413, "/429": 429, "/500": 500, "/502": 502, "/503": 503, "/504": 504}
	codes := map[string]string{"/400": "13", "/401": "16", "/403": "7", "/404": "12", "/413": "8", "/429": "14", "/500": "2", "/502": "14", "/503": "14", "/504": "4"}
	r := newRig(t, Options{}, func(ex *exchange.Exchange) { ex.Answer(statuses[string(ex.Request.Target)], "why: 100% ünclear\n") })
	client := r.transport()
	for path, status := range statuses {
		for kind, grpc := range map[string]bool{"application/grpc": true, "application/grpc+proto": true, "application/grpc-web": false, "text/plain": false} {
			resp, err := client.Post("http://a.example"+path, kind, strings.NewReader("x"))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if !grpc {
				if resp.StatusCode != status || resp.Header.Get("Grpc-Status") != "" {
					t.Errorf("%s %s: %d, %v", path, kind, resp.StatusCode, resp.Header)
				}
				continue
			}
			message, err := url.PathUnescape(resp.Header.Get("Grpc-Message"))
			if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/grpc" || resp.Header.Get("Grpc-Status") != codes[path] || err != nil || message != "why: 100% ünclear" {
				t.Errorf("%s %s: %d, %v", path, kind, resp.StatusCode, resp.Header)
			}
		}
	}
	for _, e := range r.seen.statuses() {
		if e.status == 200 || e.broken {
			t.Errorf("seen as %+v", e)
		}
	}
}

// TestMessagesAreEncoded: what HTTP/2 fields cannot hold, and no more.
func TestMessagesAreEncoded(t *testing.T) {
	const want = "a~ b%25%0A%1F%7F%C3%BC"
	if got := string(appendMessage(nil, []byte("a~ b%\n\x1f\x7f\u00fc"))); got != want {
		t.Errorf("%s, wanted %s", got, want)
	}
}

// A pod that resets its stream instead of answering resets that of a gRPC client,
// and of everybody's in the middle of a response.
func TestResetPassesThrough(t *testing.T) {
	r := newRig(t, Options{}, func(ex *exchange.Exchange) {
		reset := &exchange.StreamReset{Code: uint32(http2.ErrCodeEnhanceYourCalm)}
		if string(ex.Request.Target) == "/late" {
			ex.Response.Status, ex.Response.Length, ex.Response.Body = 200, -1, failing{reset}
			return
		}
		ex.Answer(502, "502")
		ex.Response.Reset = reset
	})
	for target, want := range map[string]string{"/": "502 502", "/late": "RST ENHANCE_YOUR_CALM"} {
		c := r.dial()
		c.headers(1, true, with(without(get, ":path"), ":path: "+target)[:4]...)
		if got := c.outcome(1); got != want {
			t.Errorf("%s: %q, want %q", target, got, want)
		}
	}
	c := r.dial()
	c.headers(1, true, with(get, "content-type: application/grpc")...)
	if got := c.outcome(1); got != "RST ENHANCE_YOUR_CALM" {
		t.Errorf("gRPC: %q", got)
	}
}

// failing is a body that fails.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
func (f failing) Close() error             { return errors.ErrUnsupported }

package dispatch_test

import (
	"io"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/proxy/dispatch"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
	"quayside.io/proxy/route"
)

// dropping counts the copies that could not be made whole.
type dropping struct{ sent, dropped int }

func (d *dropping) Ask(*filter.Question) (*filter.Answer, error) { return nil, io.EOF }
func (d *dropping) Send(*filter.Question)                        { d.sent++ }
func (d *dropping) Drop()                                        { d.dropped++ }

// TestErrorPagesGiveBack: what the filters of a route took for a request is given back once where
// an error page leads to another, which sees no body, while the front end sees all of it again.
func TestErrorPagesGiveBack(t *testing.T) {
	asker := &dropping{}
	d := dispatch.New(dispatch.Options{Asker: asker})
	var seen []string
	d.SetTable(newTable(func(ing *networkingv1.Ingress) {
		ing.Annotations = map[string]string{
			route.OwnPrefix + "mirror-target": "http://mirror.test", route.OwnPrefix + "limit-connections": "1",
			route.OwnPrefix + "configuration-snippet": "proxy_intercept_errors on; error_page 404 /page; set $a $uri; proxy_set_header X-A $a;",
		}
	}), []dispatch.Forwarder{forwarderFunc(func(ex *exchange.Exchange) {
		r := &ex.Request
		seen = append(seen, string(r.Method)+" "+string(r.Target)+" "+string(r.Header.Get("X-A")))
		if string(r.Target) == "/page" {
			if r.Body != nil || r.Length != 0 {
				t.Error("the page's route sees a body")
			}
			ex.Response.Status = 200
			return
		}
		r.Body.Read(make([]byte, 3))
		ex.Response.Status, ex.Response.Close = 404, true
	})})
	for range 3 { // of which each would keep the next from coming
		var ex exchange.Exchange
		ex.Request.Method, ex.Request.Host, ex.Request.Target, ex.Request.Path = []byte("POST"), []byte("a.test"), []byte("/x"), []byte("/x")
		ex.Request.Body, ex.Request.Length = io.NopCloser(strings.NewReader("a body")), -1
		d.Handle(&ex)
		if r := &ex.Request; ex.Response.Status != 404 || !ex.Response.Close || string(r.Method) != "POST" || r.Body == nil || r.Length != -1 {
			t.Fatalf("%d %s, body %v", ex.Response.Status, r.Method, r.Body)
		}
		rest, err := io.ReadAll(ex.Request.Body)
		if string(rest) != "ody" || err != nil {
			t.Errorf("the rest of the body is %q, %v", rest, err)
		}
		ex.Observer.Finished(&ex, false)
	}
	if got := strings.Join(seen, ", "); got != "POST /x /x, GET /page /page, POST /x /x, GET /page /page, POST /x /x, GET /page /page" {
		t.Error(got)
	}
	// The route of the page is the same, so that it copies requests of its own.
	if asker.dropped != 3 || asker.sent != 3 {
		t.Errorf("%+v", asker)
	}
}

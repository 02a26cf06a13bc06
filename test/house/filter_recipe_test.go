package house

import "testing"

// A new filter is what proxy/dispatch/doc.go says: a setting, a constructor with its
// place in the order, and an option row that fills the setting. Over HTTP it does
// what its annotation asks, and a value that it does not understand is told.
func TestANewFilterIsAnOptionRow(t *testing.T) {
	const makes = `package filter

import "quayside.io/proxy/exchange"

// shout adds a word to every response, and refuses to brew coffee.
func shout(word string) Filter {
	value := []byte(word)
	return Filter{
		Request: func(ex *exchange.Exchange) bool {
			if string(ex.Request.Method) == "BREW" {
				ex.Answer(418, "418 I'm a teapot\n")
				return false
			}
			return true
		},
		Response: func(ex *exchange.Exchange) { ex.Response.Header.SetBytes("X-Shout", value) },
	}
}
`
	const parses = `package route

import "errors"

func parseShout(s *settings, value string) error {
	if len(value) > 8 {
		return errors.New("not a word of up to 8 letters")
	}
	s.filters.Shout = value
	return nil
}
`
	const proves = `package dispatch_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/proxy/dispatch"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/route"
)

func TestTheNewFilterActs(t *testing.T) {
	for value, want := range map[string]string{"hey": "hey", "much too long": ""} {
		table := newTable(func(ing *networkingv1.Ingress) {
			ing.Annotations = map[string]string{route.NginxPrefix + "shout": value}
		})
		told := false
		for _, p := range table.Problems {
			told = told || strings.Contains(p.Message, "shout")
		}
		if told == (want != "") {
			t.Errorf("%q: told is %v", value, told)
		}
		d := dispatch.New(dispatch.Options{})
		d.SetTable(table, []dispatch.Forwarder{forwarderFunc(func(ex *exchange.Exchange) { ex.Answer(200, "ok") })})
		s := httptest.NewServer(frontEnd{d})
		for method, status := range map[string]int{"GET": 200, "BREW": 418} {
			if want == "" {
				status = 200
			}
			req, _ := http.NewRequest(method, s.URL, nil)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != status || resp.Header.Get("X-Shout") != want {
				t.Errorf("%q, %s: %d and %q", value, method, resp.StatusCode, resp.Header.Get("X-Shout"))
			}
		}
		s.Close()
	}
}
`
	edits := map[string][]line{
		"proxy/filter/settings.go": {
			{"\t// UpstreamHost replaces the Host field", "\t// Shout is a word for every response. Empty: none.\n\tShout string\n"},
			{"\tadd(s.UpstreamHost != nil, func() Filter {", "\tadd(s.Shout != \"\", func() Filter { return shout(s.Shout) })\n"},
		},
		"proxy/route/option_table.go": {
			{"\t\t{key: \"upstream-vhost\", scope: ofLocation,", "\t\t{key: \"shout\", scope: ofLocation, risk: riskLow, effect: applied, parse: parseShout, doc: \"a word\"},\n"},
		},
	}
	files := map[string]string{
		"proxy/filter/shout.go": makes, "proxy/route/option_shout.go": parses, "proxy/dispatch/new_filter_test.go": proves,
	}
	testOverlaid(t, edits, files, "TestTheNewFilterActs", "proxy/dispatch")
}

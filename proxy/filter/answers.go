package filter

import (
	"cmp"
	"strconv"

	"quayside.io/proxy/exchange"
)

// Closed answers every request with 503 and says why, unless that is empty.
func Closed(why string) Filter {
	text := "503 Service Unavailable\n"
	if why != "" {
		text = "503 Service Unavailable: " + why + "\n"
	}
	return Filter{Request: func(ex *exchange.Exchange) bool {
		ex.Answer(503, text)
		return false
	}}
}

// directResponse answers every request. What clients have written into the text is never
// taken for more than text.
func directResponse(r *DirectResponse, at Place) Filter {
	text := r.Text.filler(at, appendAsIs, appendClean)
	return Filter{Request: func(ex *exchange.Exchange) bool {
		r.answer(ex, text(ex), "")
		return false
	}}
}

// answer answers with the text as it is filled in, and its media type; empty: text/plain.
func (r *DirectResponse) answer(ex *exchange.Exchange, body []byte, kind string) {
	ex.Answer(r.Status, string(body))
	switch {
	case len(body) == 0:
		ex.Response.Header.Del("Content-Type")
	case kind != "":
		ex.Response.Header.Set("Content-Type", kind)
	}
	if r.Text.HasVariables() {
		ex.Response.Header.Set("X-Content-Type-Options", "nosniff")
	}
	ex.Response.Fault = 0
}

// ToTLS sends requests that did not come over TLS to the same target over TLS, where
// applies says so of the path that the route was found by, whatever scripts have made of it. A
// code of zero is 308. The address names the port, unless that is empty.
func ToTLS(applies func(path []byte) bool, code int, port string) Filter {
	code = cmp.Or(code, 308)
	var behind []byte
	if port != "" {
		behind = []byte(":" + port)
	}
	text := strconv.Itoa(code) + " Redirect: use https\n"
	return Filter{Request: func(ex *exchange.Exchange) bool {
		r := &ex.Request
		if r.TLS || !applies(r.RoutedPath()) {
			return true
		}
		name, _ := exchange.SplitHost(r.Host)
		ex.Answer(code, text)
		ex.Response.Header.AddParts("Location", []byte("https://"), name, behind, r.AskedTarget())
		return false
	}}
}

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

// ToTLS sends requests that did not come over TLS to the same target over TLS, on
// the usual port, where applies says so of the path (normalised). A code of zero
// is 308.
func ToTLS(applies func(path []byte) bool, code int) Filter {
	code = cmp.Or(code, 308)
	text := strconv.Itoa(code) + " Redirect: use https\n"
	return Filter{Request: func(ex *exchange.Exchange) bool {
		r := &ex.Request
		if r.TLS || !applies(r.Path) {
			return true
		}
		name, _ := exchange.SplitHost(r.Host)
		ex.Answer(code, text)
		ex.Response.Header.AddParts("Location", []byte("https://"), name, r.Target)
		return false
	}}
}

package filter

import "quayside.io/proxy/exchange"

// Closed answers every request with 503 and says why.
func Closed(why string) Filter {
	text := "503 Service Unavailable: " + why + "\n"
	return Filter{Request: func(ex *exchange.Exchange) bool {
		ex.Answer(503, text)
		return false
	}}
}

// ToTLS sends requests that did not come over TLS to the same target over TLS, on
// the usual port, where applies says so of the path (normalised).
func ToTLS(applies func(path []byte) bool) Filter {
	return Filter{Request: func(ex *exchange.Exchange) bool {
		r := &ex.Request
		if r.TLS || !applies(r.Path) {
			return true
		}
		name, _ := exchange.SplitHost(r.Host)
		ex.Answer(308, "308 Permanent Redirect: use https\n")
		ex.Response.Header.AddParts("Location", []byte("https://"), name, r.Target)
		return false
	}}
}

package filter

import (
	"testing"

	"quayside.io/proxy/exchange"
)

// TestSteer: what steers nginx is taken out, however it is spelt, and nothing else.
func TestSteer(t *testing.T) {
	for _, c := range []struct {
		fields [][2]string
		to     string
		rate   int64
		left   string
	}{
		{nil, "", -1, ""},
		{[][2]string{{"Server", "a"}, {"X-Accelerator", "b"}, {"X-Accel-Else", "c"}}, "", -1, "Server X-Accelerator X-Accel-Else "},
		{[][2]string{{"A", ""}, {"x-ACCEL-redirect", "/b?c"}, {"B", ""}, {"X-Accel-Limit-Rate", "7"}}, "/b?c", 7, "A B "},
		{[][2]string{{"X-Accel-Limit-Rate", "0"}, {"X-Accel-Charset", "utf-8"}, {"X-Accel-Buffering", "no"}, {"X-Accel-Expires", "@5"}}, "", 0, ""},
		{[][2]string{{"X-Accel-Limit-Rate", "-7"}, {"X-Accel-Redirect", ""}}, "", -1, ""},
		{[][2]string{{"X-Accel-Limit-Rate", "99999999999999999999"}}, "", -1, ""},
	} {
		var ex exchange.Exchange
		for _, f := range c.fields {
			ex.Response.Header.Add(f[0], f[1])
		}
		to, rate := Steer(&ex)
		left := ""
		for _, f := range ex.Response.Header.Fields() {
			left += string(f.Name) + " "
		}
		if to != c.to || rate != c.rate || left != c.left {
			t.Errorf("%q: %q, %d, left %q", c.fields, to, rate, left)
		}
	}
}

// TestWhereBackendsMayLead: downwards, as nginx has it.
func TestWhereBackendsMayLead(t *testing.T) {
	for target, safe := range map[string]bool{
		"/a": true, "/a..b/..c": true, "/a?/../b": true, "/": true, "/a%2fb": true,
		"": false, "a": false, "?a": false, "http://h/a": false, "/..": false, "/a/../b": false, "/a/%2e%2E": false, "/a%2F..": false, "/.%2e/a": false,
	} {
		if isSafe(target) != safe {
			t.Errorf("%q: %v", target, !safe)
		}
	}
}

// TestWhereBackendsAreObeyed: requests are copied for backends that may lead elsewhere, so that
// is not done where only questions have a location that is internal.
func TestWhereBackendsAreObeyed(t *testing.T) {
	for want, places := range map[bool][]ScriptPlace{
		true:  {{Internal: true, Asked: true}, {Internal: true}},
		false: {{Internal: true, Asked: true}, {}},
	} {
		if got := PagesOf(&Settings{Scripts: []*Script{{OfHost: true, Places: places}}}, Tools{}).Lead(); got != want {
			t.Errorf("%v: %v", places, got)
		}
	}
}

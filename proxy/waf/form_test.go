package waf

import (
	"io"
	"net/url"
	"strings"
	"testing"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
	"quayside.io/proxy/seclang"
)

func post(contentType, body string) *exchange.Exchange {
	ex := ask("/")
	ex.Request.Method = []byte("POST")
	ex.Request.Header.Add("Content-Type", contentType)
	ex.Request.Body = io.NopCloser(strings.NewReader(body))
	return ex
}

// TestAFormIsOneWithParametersToo, and what is read like one has its bound.
func TestAFormIsOneWithParametersToo(t *testing.T) {
	d := running(t)
	core := seclang.RuleSet{Engine: seclang.On, Core: true}
	inForce(t, d, rule("evil"), core)
	for contentType, want := range map[string]int{
		"application/x-www-form-urlencoded":                403,
		"application/x-www-form-urlencoded; charset=UTF-8": 403,
		"Application/X-WWW-Form-Urlencoded;charset=utf-8":  403,
		"text/plain": 0,
	} {
		body := "word=" + url.QueryEscape("evil")
		if v := judge(d, rule("evil"), post(contentType, body), body); v.Status != want {
			t.Errorf("%s: %+v, want %d", contentType, v, want)
		}
	}
	for _, c := range []struct {
		rules       seclang.RuleSet
		contentType string
		want        int
	}{
		{rule("evil"), "application/x-www-form-urlencoded; charset=UTF-8", seclang.DefaultFields},
		{core, "application/x-www-form-urlencoded; charset=UTF-8", seclang.DefaultFields},
		{core, "a/b", seclang.DefaultFields},
		{core, "multipart/form-data; boundary=b", seclang.DefaultLimit},
		{rule("evil"), "a/b", seclang.DefaultLimit},
	} {
		if got := wants(d, c.rules, post(c.contentType, "a=b")); got != c.want {
			t.Errorf("core rules %v, %s: %d bytes are looked at, want %d", c.rules.Core, c.contentType, got, c.want)
		}
	}
}

// TestAFileIsWhatEveryBackendTakesForOne: filename* is none of forms (RFC 7578 section
// 4.2), and who does not know it reads a field.
func TestAFileIsWhatEveryBackendTakesForOne(t *testing.T) {
	d := running(t)
	inForce(t, d, rule("evil"))
	for disposition, want := range map[string]int{
		`form-data; name="q"`:                                           403,
		`form-data; name="q"; filename="a.png"`:                         0,
		`form-data; name="q"; filename*=utf-8''a.png`:                   400,
		`form-data; name="q"; FileName*0="a.p"; filename*1="ng"`:        400,
		`form-data; name="q"; filename="a.png"; filename*=utf-8''a.png`: 400,
	} {
		body := "--b\r\nContent-Disposition: " + disposition + "\r\n\r\nevil\r\n--b--\r\n"
		if v := judge(d, rule("evil"), post("multipart/form-data; boundary=b", body), body); v.Status != want {
			t.Errorf("%s: %+v, want %d", disposition, v, want)
		}
	}
}

// wants is how much of the body of an exchange is looked at.
func wants(d *Driver, r seclang.RuleSet, ex *exchange.Exchange) int {
	i, _ := d.Inspector(r).Begin(ex, "", &filter.Place{})
	defer i.End()
	return i.Wants()
}

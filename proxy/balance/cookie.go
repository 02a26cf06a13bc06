package balance

import (
	"bytes"
	"cmp"
	"strconv"
	"time"

	"quayside.io/proxy/exchange"
)

// appendAttributes appends the attributes of ingress-nginx, in its order.
func (c *Cookie) appendAttributes(b []byte, r *exchange.Request, now time.Time) []byte {
	if c.Expires > 0 {
		b = append(b, "; Expires="...)
		b = now.Add(c.Expires).UTC().AppendFormat(b, "Mon, 02 Jan 2006 15:04:05 GMT")
	}
	if c.MaxAge > 0 {
		b = append(b, "; Max-Age="...)
		b = strconv.AppendInt(b, int64(c.MaxAge/time.Second), 10)
	}
	if c.Domain != "" {
		b = append(append(b, "; Domain="...), c.Domain...)
	}
	b = append(b, "; Path="...)
	b = append(b, cmp.Or(c.Path, r.CookiePath, "/")...)
	if c.Secure == SecureOn || c.Secure == SecureAuto && r.TLS {
		b = append(b, "; Secure"...)
	}
	b = append(b, "; HttpOnly"...)
	if c.SameSite != "" && !(c.ConditionalNone && c.SameSite == "None" && misreadsNone(r.Header.Get("User-Agent"))) {
		b = append(append(b, "; SameSite="...), c.SameSite...)
	}
	return b
}

// misreadsNone reports whether a browser takes SameSite=None for Strict: the
// list of ingress-nginx.
func misreadsNone(agent []byte) bool {
	has := func(s string) bool { return bytes.Contains(agent, []byte(s)) }
	switch {
	case has("Chrome/4"), has("Chrome/5"), has("Chrome/6"), has("CPU iPhone OS 12"), has("iPad; CPU OS 12"):
		return true
	}
	return has("Macintosh") && has("Intel Mac OS X 10_14") && has("Safari") && !has("Chrome")
}

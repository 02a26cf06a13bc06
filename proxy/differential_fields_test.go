package proxy_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestDrawnFieldsSameAsNginx draws what a backend says in Set-Cookie, Location and Refresh, and
// options that change it.
func TestDrawnFieldsSameAsNginx(t *testing.T) {
	count, parts := drawn(t)
	draw := fieldDrawer{parts}
	compareWithNginx(t, draw.cases(count, draw.options, func() string { return "/x\nX-Says: " + draw.said() }))
}

// fieldDrawer draws fields of responses.
type fieldDrawer struct{ snippetDrawer }

func (d fieldDrawer) options() sameCase {
	c := sameCase{with: map[string]string{}, server: "absolute_redirect off;"}
	for _, option := range [][]string{
		{"proxy-cookie-path", "/app /", "/app/ /new/", "/ /in/", "~^/APP(.*) /x$1", "~*^/APP(.*) /x$1", "~/x$ \"/; Max-Age=7\"", "~*^/(.*)$ \"/$1; Max-Age=7\"", "/app $uri"},
		{"proxy-cookie-domain", "inner.test shop.test", ".inner.test shop.test", "INNER.test $host", "~INNER shop.test", "~inner\\.(.*)$ shop.$1", "~^\\.?inner.test$ \"shop.test; Max-Age=7\"", "test in"},
		{"proxy-cookie-flags", "~ secure httponly samesite=strict", "a nosecure nosamesite", "A httponly", "~^a samesite=none secure", "~. nohttponly", "b samesite=lax\n~ nosecure"},
	} {
		if d.IntN(2) == 0 {
			name := option[0]
			c.with[name] = d.of(option[1:]...)
			for line := range strings.SplitSeq(c.with[name], "\n") {
				c.inside += strings.ReplaceAll(name, "-", "_") + " " + line + "; "
			}
		}
	}
	if d.IntN(2) == 0 {
		from, to := d.of("http://inner.test/", "http://inner.test", "http://inner.test/app", "/app", "~^http://[^/]+/([a-z]+)(/.*)$", "~*^(https?)://INNER\\.test(.*)$", "~inner", "http://$host/"),
			d.of("https://shop.test/", "/", "https://$host", "http://shop.test/$1", "$scheme://$host:81/$2")
		switch {
		case to == "/": // nginx leaves two slashes behind others, which is another host to browsers
			from = "http://inner.test/"
		case strings.Contains(to, "$1"), strings.Contains(to, "$2"):
			from = d.of("~^http://[^/]+/([a-z]+)(/.*)$", "~*^(https?)://INNER\\.test(.*)$")
		}
		c.with["proxy-redirect-from"], c.with["proxy-redirect-to"] = from, to
		c.inside += fmt.Sprintf("proxy_redirect %s %s;", from, to)
	}
	return c
}

// said draws the fields that a backend says, as X-Says has them.
func (d fieldDrawer) said() string {
	var lines []string
	for range d.IntN(3) {
		lines = append(lines, "Set-Cookie:"+d.cookie())
	}
	if d.IntN(2) == 0 {
		lines = append(lines, "Location:"+d.place())
	}
	if d.IntN(3) == 0 {
		lines = append(lines, "Refresh:"+d.of("0; url=", "5;URL=", "3; Url= ", "1; url=\"", "7", "url=", "2 url=")+d.place())
	}
	d.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	return "X-Said:yes|" + strings.Join(lines, "|")
}

func (d fieldDrawer) place() string {
	return d.of("http://inner.test/app/login", "/app/x", "http://inner.test", "//inner.test/app", "HTTP://INNER.test/App/x", "https://inner.test/app?x=y#z",
		"http://inner.test:80/app/x", "app", "http://outer.test/inner.test/x", "http://case-1.test/x")
}

// cookie draws a cookie without an attribute that it has twice, of which nginx changes the first,
// and browsers believe the last.
func (d fieldDrawer) cookie() string {
	attributes := [][]string{
		{"Path=/app", "path=/app/x", "PATH = /app", "Path= /app/x", "Path=", "Path", "Path=\"/app\"", "Path=/"},
		{"Domain=inner.test", "domain=.INNER.test", "Domain=inner.test ", "Domain=", "Domain=other.test"},
		{"Secure", "secure", "Secure=x"}, {"HttpOnly", "httponly"}, {"SameSite=Lax", "samesite", "SameSite = None", "samesite=x"},
		{"Max-Age=3", "Expires=Wed, 01 Jan 2020 00:00:00 GMT"}, {""},
	}
	text := d.of("a", "b", "A", "a b", "", "ab") + d.of("=b", "=", "=c=d", "=\"e f\"", "=Path=/app")
	for _, i := range d.Perm(len(attributes))[:d.IntN(5)] {
		text += d.of("; ", "; ", ";", " ; ", ";  ") + d.of(attributes[i]...)
	}
	return text
}

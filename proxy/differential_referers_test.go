package proxy_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/proxy"
)

// TestReferersSameAsNginx has snippets say which pages may lead to a host, and comes from all kinds
// of them.
func TestReferersSameAsNginx(t *testing.T) {
	requests := []string{"/x", "/x.jpg", "/own/x"}
	for _, page := range []string{
		"", "-", "nowhere", "http://", "https://", "http://a.b", "http://i.ru", "HTTP://A.TEST/", "httpx://a.test/", "ftp://a.test/x", "//a.test/", "a.test", "http:/a.test/x", "xhttp://a.test/x",
		"http://a.test", "https://a.test", "https://a.test/", "https://a.test/x", "https://a.test:8080/x", "https://a.test:8080", "https://a.test:99/in/x", "https://A.TEST/in/x", "https://a.test/IN/x", "https://a.test/in", "https://a.test/in/", "https://a.test?in=/in/", "https://a.test#/in/",
		"https://a.test@b.test/", "https://b.test@a.test/", "https://b.test/a.test", "https://b.test/?u=https://a.test/in/x", "https://x.a.test/", "https://x.y.a.test/y/z", "https://xa.test/in", "https://.a.test/", "https://a.test./", "https://www.b.test/x", "https://www.b./", "https://www.b/x", "https://www.bc.test/", "https://x.www.b.test/",
		"https://case-0.test/", "https://case-1.test/x", "https://case-2.test/x", "https://case-3.test/", "https://case-4.test/", "https://case-5.test/", "https://case-6.test:18080/y", "http://CASE-7.test/", "https://x.case-0.test/", "https://user@case-0.test/",
		"https://google.test/search", "https://GOOGLE.test/Search", "https://images.google.test/", "https://c.test/google.test/", "https://localhost:3000/", "https://localhost/x", "http://[::1]/longer", "http://[::1]:80/longer", "http://127.0.0.1:80/x", "https://é.test/in",
		"https://" + strings.Repeat("a", 250) + ".a.test/", "https://" + strings.Repeat("a.", 124) + "a.test/", "https://" + strings.Repeat("a", 300) + "/in",
	} {
		requests = append(requests, "/x\nReferer: "+page, "/x.jpg\nReferer: "+page)
	}
	const shows, refuses = "add_header X-Invalid <$invalid_referer> always; ", "if ($invalid_referer) { return 403; } "
	compareWithNginx(t, []sameCase{
		scripted(shows+"valid_referers none blocked server_names *.a.test www.b.* a.test/in/ ~google\\.test/s;"+refuses, "", requests...),
		scripted(shows+"valid_referers .a.test/y b.test localhost; if ($invalid_referer = 1) { return 402; }", "", requests...),
		scripted(shows, "valid_referers blocked *.test a.test/in localhost:3000 127.0.0.1;"+refuses, requests...),
		scripted("", "valid_referers none server_names; valid_referers ~^[^/]*b\\.test ~x;"+refuses, requests...),
		scripted(shows+"valid_referers none blocked server_names;", `location ~* \.jpg$ { valid_referers none blocked a.test; if ($invalid_referer) { return 403; } return 200 fine; }`, requests...),
		scripted(shows, "valid_referers a.test;", requests...),
		scripted("valid_referers server_names *.test *.a.test/y www.* www.b.*/x;"+refuses, "", requests...),
		scripted("valid_referers none *.a.test/in; set $from $invalid_referer; if ($from = '') { return 302 https://a.test$request_uri; }"+shows, "", requests...),
	})
}

// TestDrawnReferersSameAsNginx does so with lists and pages that are drawn.
func TestDrawnReferersSameAsNginx(t *testing.T) {
	count, d := drawn(t)
	of, draw := d.of, d.Rand
	name := func() string { return of("a", "b", "www.a", "x.a", "a.b", "x.y.a") + of(".test", ".one", "") }
	var requests []string
	for range 100 {
		requests = append(requests, "/x\nReferer: "+of("http://", "https://", "HTTPS://", "", "ftp://")+of("", "", "", "x.", ".", "y.x.")+name()+of("", "", ":80", ":")+of("", "/", "/in", "/in/x", "//in", "/x"))
	}
	var cases []sameCase
	for range count {
		list, seen := "server_names", map[string]bool{}
		for range 1 + draw.IntN(5) {
			host := name()
			if draw.IntN(3) == 0 {
				host = of("*."+host, "."+host, host+".*")
			}
			bare := strings.TrimPrefix(host, ".")
			if seen[host] || seen[bare] || seen["*."+bare] || seen["."+host] || strings.HasPrefix(host, "*.") && seen[host[1:]] {
				continue // nginx takes none twice
			}
			seen[host], seen[bare] = true, true
			list += " " + host + of("", "", "/in", "/in/")
		}
		list += of("", " none", " blocked", " none blocked", ` ~^x\.`, ` ~/in$`)
		cases = append(cases, scripted(fmt.Sprintf("valid_referers %s; add_header X-Invalid <$invalid_referer> always;", list), "", requests...))
	}
	compareWithNginx(t, cases)
}

// TestReferers: who is led here by a page that may not, is refused, and one that says so twice
// must be right each time; half of a list is refused as a whole.
func TestReferers(t *testing.T) {
	const list, refuses = "valid_referers none server_names a.test; ", "if ($invalid_referer) { return 403; }"
	files, p := start(t, func(*proxy.Options) {})
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", echo(t, "web")),
		annotated("one", "one.test", map[string]string{"server-snippet": list + refuses, "server-alias": "also.test"}),
		annotated("wild", "*.wild.test", map[string]string{"configuration-snippet": list + refuses}),
		annotated("inherits", "inherits.test", map[string]string{"server-snippet": list, "configuration-snippet": refuses}),
		annotated("passage", "passage.test", map[string]string{"server-snippet": "location ~ [.]jpg$ { " + list + refuses + " proxy_pass http://web.default.svc; }"}))
	for name, snippet := range map[string]string{
		"nobody": refuses, "nothing": "valid_referers;" + refuses, "none": "valid_referers none blocked;" + refuses, "scheme": "valid_referers https://a.test;" + refuses,
		"twice": "valid_referers a.test .a.test;" + refuses, "star": "valid_referers a.*.test;" + refuses, "set": list + "set $invalid_referer 0;" + refuses, "pattern": "valid_referers ~(;" + refuses,
	} {
		files.Put(annotated(name, name+".wrong.test", map[string]string{"configuration-snippet": snippet}))
	}
	addr := bound(p, false)
	for _, c := range []struct {
		host, request string
		want          int
	}{
		{"one.test", "/", 200}, {"one.test", "/\nReferer: https://a.test/", 200}, {"one.test", "/\nReferer: https://one.test/", 200}, {"one.test", "/\nReferer: https://b.test/", 403},
		{"one.test", "/\nReferer: https://a.test/\nReferer: https://b.test/", 403}, {"one.test", "/\nReferer: https://a.test/\nReferer: https://a.test/x", 200},
		{"also.test", "/\nReferer: https://also.test/", 200}, {"also.test", "/\nReferer: https://b.test/", 403},
		{"x.wild.test", "/\nReferer: https://y.wild.test/", 200}, {"x.wild.test", "/\nReferer: https://z.y.wild.test/", 403}, {"x.wild.test", "/\nReferer: https://.wild.test/", 403},
		{"inherits.test", "/", 200}, {"inherits.test", "/\nReferer: https://b.test/", 403},
		{"passage.test", "/\nReferer: https://b.test/", 200}, {"passage.test", "/a.jpg\nReferer: https://b.test/", 403}, {"passage.test", "/a.jpg\nReferer: https://passage.test/", 200},
		{"nobody.wrong.test", "/", 503}, {"nothing.wrong.test", "/", 503}, {"none.wrong.test", "/", 503}, {"scheme.wrong.test", "/", 503}, {"twice.wrong.test", "/", 503}, {"star.wrong.test", "/", 503}, {"set.wrong.test", "/", 503}, {"pattern.wrong.test", "/", 503},
	} {
		eventually(t, fmt.Sprintf("%s answers %q with %d", c.host, c.request, c.want), func() bool { got, _ := ask(t, addr, c.host, c.request); return got == c.want })
	}
}

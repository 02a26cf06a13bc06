package proxy_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/proxy"
	"quayside.io/proxy/accesslog"
)

// TestRealIPSameAsNginx has snippets say who the client is, by whom, and asks both from several
// addresses. An if of a location goes by who connects; nginx then has $remote_addr stay that,
// whoever the client is found to be, and no case here asks so.
func TestRealIPSameAsNginx(t *testing.T) {
	var requests []string
	for _, peer := range []string{"127.1.0.5", "127.2.0.5"} {
		for _, said := range []string{
			"", "203.0.113.9", "203.0.113.9, 10.0.0.1", "203.0.113.9,198.51.100.7", "10.0.0.1, 10.0.0.2", "nobody", "203.0.113.9, nobody", "nobody, 10.0.0.3",
			"203.0.113.9:99", "2001:db8::1", "[2001:db8::1]:99", " 203.0.113.9 ,  ", ",", "127.1.0.9, 127.1.0.8", "203.0.113.9 198.51.100.7",
		} {
			for _, field := range []string{"CF-Connecting-IP", "X-Forwarded-For"} {
				requests = append(requests, fmt.Sprintf("/x\n%s: %s\nfrom %s", field, said, peer))
			}
		}
	}
	const believed = "set_real_ip_from 127.1.0.0/16; set_real_ip_from 10.0.0.0/8; set_real_ip_from unix:; "
	const shows = "add_header X-Who $remote_addr always; "
	compareWithNginx(t, []sameCase{
		scripted(shows+believed+"real_ip_header CF-Connecting-IP; allow 203.0.113.0/24; deny all;", "", requests...),
		scripted(shows+believed+"real_ip_header X-Forwarded-For; deny 203.0.113.9; if ($remote_port = x) { return 402; }", "", requests...),
		scripted(shows+believed+"real_ip_header X-Forwarded-For; real_ip_recursive on; allow 2001:db8::/32; allow 10.0.0.1; allow 203.0.113.0/24; deny all;", "", requests...),
		scripted(shows, believed+"real_ip_header CF-Connecting-IP; real_ip_recursive on; if ($remote_addr ~ ^203) { return 402; } if ($remote_addr = 127.2.0.5) { return 403; }", requests...),
		scripted(shows+"deny 198.51.100.7; if ($remote_addr = 203.0.113.9) { return 410; }", believed+"real_ip_header X-Forwarded-For;", requests...),
		scripted(shows+"set_real_ip_from 127.2.0.5; real_ip_header cf_connecting_ip;", "", requests...),
	})
}

// TestRealIPOfARoute: what a snippet says of clients is said of its own routes alone, whose limits
// and log go by it; half of it is refused.
func TestRealIPOfARoute(t *testing.T) {
	const believed = "set_real_ip_from 127.1.0.0/16; real_ip_header CF-Connecting-IP;"
	format, err := accesslog.Named("$host $remote_addr", nil)
	if err != nil {
		t.Fatal(err)
	}
	log := &logFile{}
	files, p := start(t, func(o *proxy.Options) { o.AccessLog = proxy.AccessLog{Format: format, Share: 1, To: log} })
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", echo(t, "web")),
		annotated("limited", "limited.test", map[string]string{"configuration-snippet": believed, "limit-rpm": "1", "limit-burst-multiplier": "1"}),
		annotated("allowed", "allowed.test", map[string]string{"server-snippet": believed, "whitelist-source-range": "203.0.113.0/24"}),
		annotated("other", "other.test", map[string]string{"whitelist-source-range": "203.0.113.0/24"}),
		annotated("guarded", "guarded.test", map[string]string{"configuration-snippet": believed, "whitelist-source-range": "203.0.113.0/24", "path": "/in"}),
		annotated("open", "guarded.test", nil),
		annotated("half", "half.test", map[string]string{"configuration-snippet": "real_ip_header CF-Connecting-IP; deny 10.0.0.1;"}),
		annotated("twice", "twice.test", map[string]string{"configuration-snippet": believed, "server-snippet": believed}))
	addr := bound(p, false)
	expect := func(host, request, client, says string, want int) {
		t.Helper()
		request = fmt.Sprintf("%s\nfrom %s", request, client)
		if says != "" {
			request += "\nCF-Connecting-IP: " + says
		}
		eventually(t, fmt.Sprintf("%s answers %q with %d", host, request, want), func() bool { got, _ := ask(t, addr, host, request); return got == want })
	}
	expect("allowed.test", "/", "127.1.0.1", "203.0.113.9", 200)
	expect("allowed.test", "/", "127.1.0.1", "198.51.100.7", 403)
	expect("allowed.test", "/", "127.2.0.1", "203.0.113.9", 403)
	expect("other.test", "/", "127.1.0.1", "203.0.113.9", 403)
	expect("half.test", "/", "127.1.0.1", "203.0.113.9", 503)
	expect("twice.test", "/", "127.1.0.1", "203.0.113.9", 200)
	expect("guarded.test", "/in", "127.1.0.1", "203.0.113.9", 200)
	expect("guarded.test", "/%2fin", "127.1.0.1", "203.0.113.9", 200) // which a backend may read as /in
	expect("guarded.test", "/%2fin", "127.1.0.1", "198.51.100.7", 403)
	expect("guarded.test", "/%2fin", "127.1.0.1", "", 403)

	expect("limited.test", "/", "127.1.0.1", "203.0.113.1", 200)
	expect("limited.test", "/", "127.1.0.1", "203.0.113.1", 503)
	expect("limited.test", "/", "127.1.0.1", "203.0.113.2", 200)
	for _, line := range []string{"limited.test 203.0.113.2", "other.test 127.1.0.1", "allowed.test 198.51.100.7"} {
		eventually(t, "the log says "+line, func() bool {
			for _, said := range log.lines() {
				if said == line {
					return true
				}
			}
			return false
		})
	}
}

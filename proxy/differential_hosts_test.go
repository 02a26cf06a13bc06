package proxy_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
)

// TestHostsSameAsNginx sets $best_http_host, which in each location of ingress-nginx is the host
// that the client asked for, until a snippet sets it, and then what the backend is asked for.
func TestHostsSameAsNginx(t *testing.T) {
	requests := []string{"/x\nX-To: other.test", "/moved?to=c.test", "/x\nX-Tenant: a"}
	var cases []sameCase
	for _, place := range []string{
		`set $best_http_host "fixed.test";`,
		`set $best_http_host fixed.test; proxy_set_header Host $best_http_host;`,
		`if ($http_x_to) { set $best_http_host $http_x_to; } add_header X-Host $best_http_host;`,
		`set $was $best_http_host; set $best_http_host "in.$best_http_host"; if ($best_http_host ~ ^in\.(.*)$) { set $again $1; } add_header X-Was "$was $again";`,
		`if ($arg_to) { set $best_http_host $arg_to; rewrite ^/moved$ /there break; } proxy_set_header X-Asked "$best_http_host";`,
		`set $best_http_host a.test; proxy_set_header Host b.test;`,
		`if ($http_x_tenant) { set $tenant $http_x_tenant; set $best_http_host "$tenant.test"; } if ($best_http_host = a.test) { return 404; }`,
	} {
		c := scripted(place, "", requests...)
		c.inside = "set $best_http_host $http_host; " + c.inside
		if !strings.Contains(place, "set_header Host") {
			c.inside += " proxy_set_header Host $best_http_host;"
		}
		cases = append(cases, c)
	}
	compareWithNginx(t, cases)
}

// TestNamesThatSnippetsSay: server_name of a server-snippet is an alias, and "_" is nobody.
func TestNamesThatSnippetsSay(t *testing.T) {
	files, p := start(t, func(o *proxy.Options) { o.Routes.Classes.Adopt = []string{ingressclass.NginxController} })
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", echo(t, "web")),
		annotated("web", "web.test", map[string]string{"server-snippet": "server_name _ more.test;\nserver_name again.test;", "server-alias": "said.test", "configuration-snippet": "access_log /var/log/web.log main;\nif_modified_since off;\nadd_header X-Snippet obeyed;"}),
		annotated("wrong", "wrong.test", map[string]string{"configuration-snippet": "server_name wrong-alias.test;"}))
	addr := bound(p, false)
	for host, want := range map[string]int{"web.test": 200, "more.test": 200, "again.test": 200, "said.test": 200, "wrong.test": 200, "_": 404, "wrong-alias.test": 404} {
		eventually(t, host+" answers", func() bool {
			status, said := ask(t, addr, host, "/")
			return status == want && (status != 200 || host == "wrong.test" || strings.Contains(said, "X-Snippet: obeyed"))
		})
	}
}

// TestSnippetsInPart: what a snippet can do without is told, and the rest acts; a guard beside it
// guards.
func TestSnippetsInPart(t *testing.T) {
	files, p := start(t, func(o *proxy.Options) {
		o.Hostname = "proxy-1"
		o.Routes.ConfigMap = snapshot.Key{Namespace: "default", Name: "wide"}
	})
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", echo(t, "web")), configMap("wide", "location-snippet", "keepalive_timeout 10m;\nadd_header X-Of-All $hostname;"),
		annotated("web", "web.test", map[string]string{"server-snippet": "large_client_header_buffers 4 128k;\nlocation /metrics { deny all; }", "configuration-snippet": "proxy_cache all;\nproxy_cache_valid 200 1m;\nlimit_rate 500k;\nadd_header X-Own $hostname;"}))
	addr := bound(p, false)
	eventually(t, "the snippets act", func() bool {
		status, said := ask(t, addr, "web.test", "/")
		return status == 200 && strings.Contains(said, "X-Of-All: proxy-1\r\n") && strings.Contains(said, "X-Own: proxy-1\r\n")
	})
	if status, _ := ask(t, addr, "web.test", "/metrics"); status != 403 {
		t.Errorf("/metrics is answered with %d", status)
	}
	var told []string
	for _, problem := range p.Problems() {
		told = append(told, problem.Reason+": "+problem.Message)
	}
	for _, want := range []string{
		"UnsupportedOption: option location-snippet acts in part: line 1, keepalive_timeout 10m: the ConfigMap says that for all hosts: keep-alive",
		"InvalidAnnotation: annotation nginx.ingress.kubernetes.io/server-snippet acts in part: line 1, large_client_header_buffers 4 128k: the ConfigMap says that for all hosts: large-client-header-buffers",
		"InvalidAnnotation: annotation nginx.ingress.kubernetes.io/configuration-snippet acts in part: line 1, proxy_cache all: nothing is kept here: each request is the backend's",
	} {
		if !slices.Contains(told, want) {
			t.Errorf("it is not told that %s, but\n%s", want, strings.Join(told, "\n"))
		}
	}
}

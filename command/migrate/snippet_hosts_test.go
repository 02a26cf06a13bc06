package migrate

import (
	"maps"
	"slices"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
	"quayside.io/proxy/route"
)

// shopPaths is an Ingress of host shop.test with these Prefix paths before one Service.
func shopPaths(paths ...string) networkingv1.IngressSpec {
	below, class := networkingv1.PathTypePrefix, "quayside"
	web := networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}}}
	rule := &networkingv1.HTTPIngressRuleValue{}
	for _, path := range paths {
		rule.Paths = append(rule.Paths, networkingv1.HTTPIngressPath{Path: path, PathType: &below, Backend: web})
	}
	return networkingv1.IngressSpec{IngressClassName: &class, Rules: []networkingv1.IngressRule{{Host: "shop.test", IngressRuleValue: networkingv1.IngressRuleValue{HTTP: rule}}}}
}

// What a snippet says of a host becomes options where one Ingress alone has it, and stays
// whole where others would lose it, or where locations of ingress-nginx never had it.
func TestSnippetsOfHosts(t *testing.T) {
	for _, c := range []struct {
		text   string
		beside map[string]string // annotations of the Ingress
		shared bool
		want   string // the options; empty: the snippet stays
	}{
		{text: "add_header X-Frame-Options DENY always;", want: "response-headers=X-Frame-Options: DENY"},
		{text: "add_header X-Frame-Options DENY always;", shared: true},
		{text: "add_header X-Frame-Options DENY always;", beside: map[string]string{"configuration-snippet": "add_header X-A b;"}},
		{text: "add_header X-Frame-Options DENY always;", beside: map[string]string{"auth-url": "http://auth.test/"}},
		{text: "more_set_headers 'X-A: b';\nproxy_hide_header X-Powered-By;", beside: map[string]string{"auth-url": "http://auth.test/"}, want: "auth-url=http://auth.test/ response-headers=X-A: b\nX-Powered-By:"},
		{text: "proxy_set_header X-A b;"}, // every location sets its own
		{text: "proxy_cookie_path / /x;"}, // the same
		{text: "access_log off;\nproxy_ssl_name inner.test;", want: "enable-access-log=false proxy-ssl-name=inner.test"},
		{text: "deny 10.0.0.1;"},                                   // a guard is no field
		{text: "add_header X-A b;\nlocation = /x { return 404; }"}, // which would have the field
		{text: "proxy_hide_header X-A;\nlocation /x { deny all; }", want: "denied-paths=/x response-headers=X-A:"},
	} {
		annotations := map[string]string{prefix + "server-snippet": c.text}
		for key, value := range c.beside {
			annotations[prefix+key] = value
		}
		meta, _, notes := withoutSnippets(Meta{Namespace: "n", Name: "i", Annotations: annotations}, shopPaths("/"), !c.shared)
		_, stays := meta.Annotations[prefix+"server-snippet"]
		var got []string
		for _, key := range slices.Sorted(maps.Keys(meta.Annotations)) {
			got = append(got, strings.TrimPrefix(key, prefix)+"="+meta.Annotations[key])
		}
		if said := strings.Join(got, " "); stays != (c.want == "") || !stays && said != c.want {
			t.Errorf("%q, shared %v: stays %v, %q: %q", c.text, c.shared, stays, said, notes)
		}
	}
}

// Paths that nginx rewrites before it looks for a location become Ingresses with all that
// the first asks.
func TestSnippetsThatRewrite(t *testing.T) {
	for _, c := range []struct {
		text   string
		paths  []string
		beside map[string]string
		want   string // "path target" of each; empty: the snippet stays
	}{
		{text: "rewrite ^/old/x /new/x last;", want: "/old/x /new/x"},
		{text: `rewrite ^/u/(\d+)$ /user?id=$1 break;`, want: `/u/(\d+)$ /user?id=$1`},
		{text: "rewrite ^/a /x?s=a last; rewrite ^/a.b /x?s=ab; rewrite ^/c /y;"}, // the second goes on
		{text: "rewrite ^/a /x?s=a last; rewrite ^/c /y last; rewrite ^/a.b /x?s=ab;", want: "/a /x?s=a /c /y"},
		{text: "rewrite ^/(a|b) /x last; rewrite ^/a /y last;"},      // which comes first is the order of texts here
		{text: "rewrite ^/a /b last;", paths: []string{"/", "/abc"}}, // nginx has no /abc any more
		{text: "rewrite ^/a /b last;", beside: map[string]string{"rewrite-target": "/$1"}},
		{text: "rewrite ^/a /b last;", beside: map[string]string{"canary": "true"}},
		{text: "rewrite ^/a /data/b last; location /data { deny all; }"}, // the new path is refused
		{text: "rewrite ^/data/a /b last; location /data { deny all; }"}, // the old one is not
		{text: "rewrite ^/a /b last; location = /a { return 404; }"},     // never reached
		{text: "rewrite ^/a /b last; location = /c { return 404; }", want: "/c  /a /b"},
		{text: "rewrite /a /b last;"}, // in the middle of a path, too
		{text: "rewrite ^/a(?=b) /c last;"},
	} {
		annotations := map[string]string{prefix + "server-snippet": c.text, prefix + "auth-url": "http://auth.test/", "cert-manager.io/issuer": "ca"}
		for key, value := range c.beside {
			annotations[prefix+key] = value
		}
		paths := c.paths
		if paths == nil {
			paths = []string{"/"}
		}
		meta, beside, notes := withoutSnippets(Meta{Namespace: "n", Name: "i", Annotations: annotations}, shopPaths(paths...), true)
		_, stays := meta.Annotations[prefix+"server-snippet"]
		var got []string
		for _, o := range beside {
			at := o.Spec.(networkingv1.IngressSpec).Rules[0].HTTP.Paths[0].Path
			to := o.Metadata.Annotations[prefix+"rewrite-target"]
			got = append(got, at+" "+to)
			if to != "" && o.Metadata.Annotations[prefix+"auth-url"] == "" {
				t.Errorf("%q: %s is not guarded", c.text, at)
			}
			if o.Metadata.Annotations["cert-manager.io/issuer"] != "" {
				t.Errorf("%q: %s asks for a certificate, too", c.text, at)
			}
		}
		if said := strings.Join(got, " "); stays != (c.want == "") || said != c.want {
			t.Errorf("%q: stays %v, %q: %q", c.text, stays, said, notes)
		}
	}
}

// The snippet that a file server of PHP asks for is not left over.
func TestSnippetOfAFileServer(t *testing.T) {
	const text = `
server_tokens off;
proxy_hide_header X-Powered-By;
rewrite ^/.well-known/webfinger /index.php/.well-known/webfinger last;
rewrite ^/.well-known/host-meta /public.php?service=host-meta last;
rewrite ^/.well-known/host-meta.json /public.php?service=host-meta-json;
location = /.well-known/caldav {
  return 301 $scheme://$host/remote.php/dav;
}
location = /robots.txt {
  allow all;
  log_not_found off;
  access_log off;
}
location ~ ^/(?:build|tests|config|data)/ {
  deny all;
}
location ~ ^/(?:autotest|occ|console) {
  deny all;
}`
	meta, beside, notes := withoutSnippets(Meta{Namespace: "n", Name: "files", Annotations: map[string]string{prefix + "server-snippet": text}}, shopPaths("/"), true)
	want := map[string]string{prefix + "denied-paths": "~ ^/(?:build|tests|config|data)/\n~ ^/(?:autotest|occ|console)", prefix + "response-headers": "X-Powered-By:"}
	if !maps.Equal(meta.Annotations, want) || len(beside) != 3 {
		t.Errorf("%q and %v: %q", meta.Annotations, beside, notes)
	}
	objects := []snapshot.Object{&networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "files", Annotations: meta.Annotations}, Spec: shopPaths("/")}}
	for _, o := range beside {
		objects = append(objects, &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: o.Metadata.Name, Annotations: o.Metadata.Annotations}, Spec: o.Spec.(networkingv1.IngressSpec)})
	}
	table := route.Compile(snapshot.Of(objects...), nil, route.Options{Classes: ingressclass.Rules{Name: "quayside"}})
	for _, c := range []struct {
		path, owner string
		denied      bool
	}{
		{"/", "files", false}, {"/robots.txt", "files", false}, {"/index.php", "files", false},
		{"/data/x", "files", true}, {"/occult", "files", true}, {"/x/data/", "files", false}, {"/data%2Fx", "files", true},
		{"/.well-known/caldav", "files-place-1", false}, {"/.well-known/caldav/x", "files", false},
		{"/.well-known/webfinger", "files-rewrite-2", false}, {"/.well-known/host-meta.json", "files-rewrite-3", false},
	} {
		ex := &exchange.Exchange{Request: exchange.Request{Method: []byte("GET"), Host: []byte("shop.test"), Target: []byte(c.path), Path: []byte(c.path)}}
		r, _ := table.Match(&ex.Request)
		if r == nil || r.Owner.Name != c.owner || filter.GuardsOf(r.Filters, filter.Tools{}).Request(ex) == c.denied {
			t.Errorf("%s leads to %v, and is answered %d", c.path, r, ex.Response.Status)
		}
	}
}

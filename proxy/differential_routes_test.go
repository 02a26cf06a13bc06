package proxy_test

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
)

// TestRoutesSameAsNginx draws Ingresses that meet at hosts and paths, writes nginx the
// configuration that ingress-nginx would, and asks both.
func TestRoutesSameAsNginx(t *testing.T) {
	binary := findNginx(t)
	count, parts := drawn(t)
	draw := routeDrawer{parts}
	files, p := start(t, func(o *proxy.Options) { o.Routes.Classes.Adopt = []string{ingressclass.NginxController} })
	places := []string{}
	for _, name := range routedServices() {
		s := httptest.NewServer(sameBackend(name))
		defer s.Close()
		addr := strings.TrimPrefix(s.URL, "http://")
		places = append(places, "to-"+name+";", addr+";")
		files.Put(service(name, corev1.ServicePort{Port: 80}), slice(name, "", addr))
	}
	addr := bound(p, false)
	var clusters [][]*networkingv1.Ingress
	var conf strings.Builder
	var peers []string
	_, port, _ := net.SplitHostPort(freeAddress(t))
	for len(clusters) < count {
		list, peer := draw.ingresses(), fmt.Sprintf("127.0.%d.%d:%s", 1+len(clusters)/250, 1+len(clusters)%250, port)
		servers, ok := asIngressNginx(list, peer)
		if !ok {
			continue // nginx would not load it
		}
		clusters, peers = append(clusters, list), append(peers, peer)
		conf.WriteString(strings.NewReplacer(places...).Replace(servers))
	}
	runNginx(t, binary, t.TempDir(), peers[0], conf.String())
	asked := 0
	for i, list := range clusters {
		marker := ingress("marker", "marker.test", fmt.Sprint("/", i), "web", number)
		marker.Spec.IngressClassName = list[0].Spec.IngressClassName // or rules without a host would be for its paths, too
		objects := []snapshot.Object{marker}
		for _, ing := range list {
			objects = append(objects, ing)
		}
		files.Put(objects...)
		eventually(t, "the routes are served", func() bool {
			code, _ := get(t, addr, "marker.test", marker.Spec.Rules[0].HTTP.Paths[0].Path)
			return code == 200
		})
		for _, host := range askedHosts() {
			for _, target := range askedPaths() {
				asked++
				want, got := essence(ask(t, peers[i], host, target)), essence(ask(t, addr, host, target))
				if want != got {
					t.Errorf("%s%s\nnginx: %s\nours:  %s\n%s", host, target, want, got, described(list))
				}
			}
		}
	}
	t.Logf("%d clusters, %d requests", count, asked)
}

// ofNginx are those of its class.
func ofNginx(list []*networkingv1.Ingress) []*networkingv1.Ingress {
	return slices.DeleteFunc(slices.Clone(list), func(ing *networkingv1.Ingress) bool { return *ing.Spec.IngressClassName != ingressclass.NginxName })
}

// described is what a person has to know of Ingresses to judge a difference.
func described(list []*networkingv1.Ingress) string {
	var text strings.Builder
	for _, ing := range ofNginx(list) {
		fmt.Fprintf(&text, "  %s %v", ing.Name, ing.Annotations)
		if b := ing.Spec.DefaultBackend; b != nil {
			fmt.Fprintf(&text, " default=%s", b.Service.Name)
		}
		for _, rule := range ing.Spec.Rules {
			for _, path := range rule.HTTP.Paths {
				fmt.Fprintf(&text, " | %s%s %s %s", rule.Host, path.Path, *path.PathType, path.Backend.Service.Name)
			}
		}
		text.WriteByte('\n')
	}
	return text.String()
}

func routedServices() []string { return []string{"web", "new", "errors", "gate"} }

func askedHosts() []string {
	return []string{"a.test", "b.test", "x.a.test", "y.x.a.test", "A.TEST:80", "other.test", "c.test", "d.test"}
}

func askedPaths() []string {
	return []string{"/", "/a", "/a/", "/a/b", "/a/bc", "/a/b/", "/a/b/c", "/ab", "/A", "/A/B", "/a//b", "/a/../ab", "/api/v1", "/api/v1/x", "/api/vx", "/a.b", "/axb", "/other", "/a?x=/a/b", "/a%20b", "/%61/b", "/a/b?c=d&e"}
}

// routeDrawer draws Ingresses with few hosts and paths, so that they meet.
type routeDrawer struct{ snippetDrawer }

// ingresses draws up to four, the oldest first. There are always four objects, so that each
// drawing takes the place of the one before. Where paths are patterns none is Exact, since ours
// stay so; and nobody has both rules and a default backend, which in ingress-nginx answers for
// hosts that no rule has. Of several for all hosts ours is the oldest, so there is one.
func (d routeDrawer) ingresses() (list []*networkingv1.Ingress) {
	count, patterns, last, aliased := 1+d.IntN(4), d.IntN(2) == 0, 1+d.IntN(8), d.IntN(4)
	appRoot := d.of("/a/b", "/other")
	for i := range 4 {
		class := ingressclass.NginxName
		if i >= count {
			class = "another"
		}
		ing := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: fmt.Sprint("drawn-", i), Annotations: map[string]string{},
			CreationTimestamp: metav1.NewTime(time.Date(2020, 1, 1, i, 0, 0, 0, time.UTC)),
		}, Spec: networkingv1.IngressSpec{IngressClassName: &class}}
		switch {
		case i == last:
			ing.Spec.DefaultBackend = d.backend()
			if d.IntN(2) == 0 {
				ing.Annotations[nginxPrefix+"rewrite-target"] = d.of("/", "/new")
			}
		case patterns:
			d.rules(ing, d.patterned(ing))
		default:
			d.rules(ing, d.plain)
		}
		if len(ing.Spec.Rules) > 0 && d.IntN(6) == 0 {
			ing.Annotations[nginxPrefix+"whitelist-source-range"] = d.of("10.0.0.0/8", "127.0.0.0/8")
		}
		if len(ing.Spec.Rules) > 0 {
			switch d.IntN(8) {
			case 0:
				ing.Annotations[nginxPrefix+"app-root"] = appRoot
			case 3:
				d.moved(ing)
			case 1, 2:
				if ing.Spec.Rules = ing.Spec.Rules[:1]; i == aliased {
					ing.Spec.Rules[0].Host = "a.test"
					ing.Annotations[nginxPrefix+"server-alias"] = d.of("c.test", "b.test", "c.test,d.test")
				}
			}
		}
		list = append(list, ing)
	}
	d.serverSnippet(list)
	return list
}

// serverSnippet gives one of the Ingresses with rules a server-snippet, which in nginx holds for
// every request for its hosts. Ours is not for all hosts that no rule has, so those have a path.
func (d routeDrawer) serverSnippet(list []*networkingv1.Ingress) {
	ing := list[d.IntN(len(list))]
	if d.IntN(2) == 0 || len(ing.Spec.Rules) == 0 {
		return
	}
	for _, rule := range ing.Spec.Rules {
		if rule.Host == "" {
			d.rooted(rule.HTTP)
		}
	}
	ing.Annotations[nginxPrefix+"server-snippet"] = d.of(
		"if ($arg_x) { return 410; }",
		"if ($uri ~ /b$) { return 302 /sent$uri; }",
		"add_header X-From server; location = /a/b/c { return 418; }",
		"location /ab { return 200 mine; }",
		"rewrite ^/other$ /a/b; set $seen yes; add_header X-From $seen;",
		"location = /a { proxy_pass http://new.default.svc.cluster.local:80; proxy_set_header Host $http_host; }",
		`location ~* ^/api/(v\d) { return 200 api; }`,
	)
}

// moved sends what comes for an Ingress elsewhere. Its paths do not end in a slash: nginx takes
// /a/ for /a only where a backend is asked. Of rules without host each has the path /, since nginx
// sends away what no path leads to.
func (d routeDrawer) moved(ing *networkingv1.Ingress) {
	ing.Annotations[nginxPrefix+"permanent-redirect"] = "https://new.test/moved"
	for _, rule := range ing.Spec.Rules {
		for i := range rule.HTTP.Paths {
			if p := &rule.HTTP.Paths[i]; p.Path == "/a/" {
				p.Path = "/a"
			}
		}
		if rule.Host == "" {
			d.rooted(rule.HTTP)
		}
	}
}

// rooted gives a rule the path / at last.
func (d routeDrawer) rooted(h *networkingv1.HTTPIngressRuleValue) {
	prefix := networkingv1.PathTypePrefix
	h.Paths = append(h.Paths, networkingv1.HTTPIngressPath{Path: "/", PathType: &prefix, Backend: *d.backend()})
}

func (d routeDrawer) rules(ing *networkingv1.Ingress, path func() (string, networkingv1.PathType)) {
	for range 1 + d.IntN(2) {
		rule := networkingv1.IngressRule{Host: d.of("a.test", "a.test", "b.test", "*.a.test", "x.a.test", "")}
		rule.HTTP = &networkingv1.HTTPIngressRuleValue{}
		for range 1 + d.IntN(3) {
			text, kind := path()
			rule.HTTP.Paths = append(rule.HTTP.Paths, networkingv1.HTTPIngressPath{Path: text, PathType: &kind, Backend: *d.backend()})
		}
		ing.Spec.Rules = append(ing.Spec.Rules, rule)
	}
}

func (d routeDrawer) backend() *networkingv1.IngressBackend {
	return &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: d.of(routedServices()...), Port: number}}
}

func (d routeDrawer) plain() (string, networkingv1.PathType) {
	path, kind := d.of("/", "/a", "/a/", "/a/b", "/ab", "/a/b/c", "/A"), networkingv1.PathType(d.of("Exact", "Prefix", "Prefix", "ImplementationSpecific"))
	if path == "/a/" && kind == networkingv1.PathTypeExact { // of which ours do not know it without the slash
		kind = networkingv1.PathTypePrefix
	}
	return path, kind
}

// patterned makes ing one whose paths may be patterns, perhaps with a rewrite, and returns what
// draws those.
func (d routeDrawer) patterned(ing *networkingv1.Ingress) func() (string, networkingv1.PathType) {
	texts := []string{"/a(/|$)(.*)", "/api/v[0-9]+", "/.*", "/a.b", "/(.+)", "/a/(b|c)$", "/A/B", "/()(.*)"}
	if d.IntN(3) > 0 {
		ing.Annotations[nginxPrefix+"use-regex"] = d.of("true", "true", "false")
	}
	if d.IntN(2) == 0 {
		to := d.of("/", "/new", "/$1", "/new/$2", "/a", "/$2")
		ing.Annotations[nginxPrefix+"rewrite-target"] = to
		if to == "/$1" { // of which there would be two slashes, where ours leave one
			texts = []string{"/(.+)", "/a/(b|c)$", "/a/b"}
		}
	}
	return func() (string, networkingv1.PathType) {
		if len(ing.Annotations) > 0 && d.IntN(3) > 0 {
			return d.of(texts...), networkingv1.PathTypeImplementationSpecific
		}
		return d.of("/", "/a", "/a/b", "/ab", "/a/b/c", "/A"), networkingv1.PathType(d.of("Prefix", "ImplementationSpecific"))
	}
}

// asIngressNginx is the configuration that ingress-nginx makes of Ingresses, the oldest first, as
// far as it is about where requests go; its functions createServers, getBackendServers,
// updateServerLocations, buildLocation and buildProxyPass say how.
func asIngressNginx(list []*networkingv1.Ingress, addr string) (servers string, ok bool) {
	hosts := map[string][]*nginxLocation{"_": {{path: "/", unset: true}}}
	list = ofNginx(list)
	for _, ing := range list {
		fallback := ""
		if b := ing.Spec.DefaultBackend; b != nil {
			fallback = b.Service.Name
			hosts["_"][0].service = fallback
		}
		for _, rule := range ing.Spec.Rules {
			if host := cmp.Or(rule.Host, "_"); hosts[host] == nil {
				hosts[host] = []*nginxLocation{newNginxLocation("/", false, fallback, ing)}
				hosts[host][0].unset = true
			}
		}
	}
	for _, ing := range list {
		for _, rule := range ing.Spec.Rules {
			host := cmp.Or(rule.Host, "_")
			for _, p := range rule.HTTP.Paths {
				hosts[host] = enterLocation(hosts[host], newNginxLocation(p.Path, *p.PathType == networkingv1.PathTypeExact, p.Backend.Service.Name, ing))
			}
		}
	}
	aliases := aliasesOf(list, hosts)
	var conf strings.Builder
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		locations := hosts[host]
		name, options := host, ""
		if domain, isWild := strings.CutPrefix(host, "*."); isWild {
			name = `"~^(?<subdomain>[\w-]+)\.` + strings.ReplaceAll(domain, ".", `\.`) + `$"`
		}
		if host == "_" {
			options = " default_server"
		}
		fmt.Fprintf(&conf, "server { listen %s%s; server_name %s %s; merge_slashes on; absolute_redirect off;\n", addr, options, name, strings.Join(aliases[host], " "))
		text, ok := writeLocations(locations)
		snippet := serverSnippetOf(list, host)
		if at := snippetLocation(snippet); !ok || at != "" && strings.Contains(text, at) {
			return "", false
		}
		conf.WriteString(snippet + text + "}\n")
	}
	return conf.String(), true
}

// serverSnippetOf is that of the oldest Ingress that has one, as nginx is to have it.
func serverSnippetOf(list []*networkingv1.Ingress, host string) string {
	for _, ing := range list {
		text := ing.Annotations[nginxPrefix+"server-snippet"]
		if text != "" && slices.ContainsFunc(ing.Spec.Rules, func(r networkingv1.IngressRule) bool { return cmp.Or(r.Host, "_") == host }) {
			return strings.ReplaceAll(text, "proxy_pass http://new.default.svc.cluster.local:80;", sameFields+"proxy_pass http://to-new;") + "\n"
		}
	}
	return ""
}

// snippetLocation is how the location in a snippet begins; empty: there is none.
func snippetLocation(snippet string) string {
	_, at, has := strings.Cut(snippet, "location ")
	if at, _, _ = strings.Cut(at, "{"); has {
		return "location " + at + "{"
	}
	return ""
}

// nginxPrefix begins the names of ingress-nginx's annotations.
const nginxPrefix = "nginx.ingress.kubernetes.io/"

// aliasesOf are the further names of hosts: those that the oldest Ingress of each says, but for
// those that are hosts themselves.
func aliasesOf(list []*networkingv1.Ingress, hosts map[string][]*nginxLocation) map[string][]string {
	aliases := map[string][]string{}
	for _, ing := range list {
		for _, rule := range ing.Spec.Rules {
			host := cmp.Or(rule.Host, "_")
			if names := ing.Annotations[nginxPrefix+"server-alias"]; names != "" && aliases[host] == nil {
				aliases[host] = strings.Split(names, ",")
			}
		}
	}
	for host, names := range aliases {
		aliases[host] = slices.DeleteFunc(names, func(name string) bool { return hosts[name] != nil })
	}
	return aliases
}

// nginxLocation is one of ingress-nginx's.
type nginxLocation struct {
	path    string
	exact   bool
	service string // empty: the default backend, which knows nothing
	rewrite string
	regex   bool
	unset   bool // no rule has said who is asked
	appRoot string
	allowed string // empty: all
	moved   string // where everything is sent
}

func newNginxLocation(path string, exact bool, service string, ing *networkingv1.Ingress) *nginxLocation {
	return &nginxLocation{path: path, exact: exact, service: service,
		rewrite: ing.Annotations[nginxPrefix+"rewrite-target"], regex: ing.Annotations[nginxPrefix+"use-regex"] == "true", appRoot: ing.Annotations[nginxPrefix+"app-root"],
		allowed: ing.Annotations[nginxPrefix+"whitelist-source-range"], moved: ing.Annotations[nginxPrefix+"permanent-redirect"]}
}

// needsRewrite is the function of that name.
func (l *nginxLocation) needsRewrite() bool { return l.rewrite != "" && l.rewrite != l.path }

// enterLocation adds the location of a rule, unless an older one has it.
func enterLocation(list []*nginxLocation, l *nginxLocation) []*nginxLocation {
	for _, have := range list {
		if have.path == l.path && have.exact == l.exact {
			if have.unset {
				*have = *l
			}
			return list
		}
	}
	return append(list, l)
}

// writeLocations writes those of a server: the longest path first, and with each of type Prefix
// the one path without its slash. ok is false where two are the same.
func writeLocations(list []*nginxLocation) (text string, ok bool) {
	slices.SortStableFunc(list, func(a, b *nginxLocation) int {
		return cmp.Or(cmp.Compare(len(b.path), len(a.path)), strings.Compare(b.path, a.path))
	})
	exact := map[string]bool{}
	for _, l := range list {
		exact[l.path] = exact[l.path] || l.exact
	}
	var all []*nginxLocation
	for _, l := range list {
		all = append(all, l)
		if l.path == "/" || l.exact || l.needsRewrite() || l.regex {
			continue
		}
		if twin := *l; !exact[l.path] {
			twin.exact = true
			all = append(all, &twin)
		}
		if !strings.HasSuffix(l.path, "/") {
			l.path += "/"
		}
	}
	patterns := slices.ContainsFunc(all, func(l *nginxLocation) bool { return l.needsRewrite() || l.regex })
	written := map[string]bool{}
	for _, l := range all {
		at := l.at(patterns)
		if written[at] {
			return "", false
		}
		written[at] = true
		if l.appRoot != "" {
			text += "if ($uri = /) { return 302 $scheme://$http_host" + l.appRoot + "; }\n"
		}
		text += "location " + at + " { " + l.does() + " }\n"
	}
	return text, true
}

// at is what stands between location and its block.
func (l *nginxLocation) at(pattern bool) string {
	switch {
	case pattern:
		return `~* "^` + l.path + `"`
	case l.exact:
		return "= " + l.path
	}
	return l.path
}

// does is what stands in its block.
func (l *nginxLocation) does() string {
	if l.moved != "" {
		return "return 301 " + l.moved + ";"
	}
	does := "try_files /none =404;"
	if l.service != "" {
		does = sameFields + "proxy_set_header Host $http_host; proxy_redirect off; proxy_pass http://to-" + l.service + ";"
	}
	if l.needsRewrite() {
		does = `rewrite "(?i)` + l.path + `" ` + l.rewrite + " break; " + does
	}
	if l.allowed != "" {
		does = "allow " + l.allowed + "; deny all; " + does
	}
	return does
}

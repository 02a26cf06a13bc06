package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster"
	"quayside.io/proxy/route"
)

// optionsVariable makes Quayside serve with the options of that name.
const optionsVariable = "QUAYSIDE_BENCH_OPTIONS"

// optionSet is options of an Ingress, and what nginx is told to do the same.
type optionSet struct {
	name        string
	annotations map[string]string
	http        string   // directives outside of the server
	location    string   // directives inside
	fields      []string // that each request has
}

// A path that is rewritten; others are asked for just so.
const (
	rewrittenPath = "/a(/|$)(.*)"
	askedPath     = "/a/b"
)

// optionSets are the cheap options, each alone and all at once. What nginx does for
// affinity is its nearest: it makes a cookie for who has none.
func optionSets() []optionSet {
	sets := []optionSet{
		{name: "none"},
		{name: "headers", annotations: map[string]string{"upstream-vhost": "inner.example", "x-forwarded-prefix": "/a"},
			location: "proxy_set_header Host inner.example; proxy_set_header X-Forwarded-Prefix /a;"},
		{name: "cors", annotations: map[string]string{"enable-cors": "true", "cors-allow-origin": "https://*.shop.example"},
			http: `map $http_origin $origin { "~*^https://[a-z0-9-]+\.shop\.example$" $http_origin; }` +
				` map $origin $methods { default "GET, PUT, POST, DELETE, PATCH, OPTIONS"; "" ""; } map $origin $credentials { default true; "" ""; } map $origin $age { default 1728000; "" ""; }` +
				` map $origin $names { default "DNT,Keep-Alive,User-Agent,X-Requested-With,If-Modified-Since,Cache-Control,Content-Type,Range,Authorization"; "" ""; }`,
			location: "add_header Access-Control-Allow-Origin $origin always; add_header Access-Control-Allow-Methods $methods always; add_header Access-Control-Allow-Headers $names always;" +
				" add_header Access-Control-Allow-Credentials $credentials always; add_header Access-Control-Max-Age $age always; add_header Vary Origin always;",
			fields: []string{"Origin: https://www.shop.example"}},
		{name: "limits", annotations: map[string]string{"limit-rps": "1000000", "limit-connections": "1000"},
			http:     "limit_req_zone $binary_remote_addr zone=rps:5m rate=1000000r/s; limit_conn_zone $binary_remote_addr zone=conn:5m;",
			location: "limit_req zone=rps burst=5000000 nodelay; limit_conn conn 1000;"},
		{name: "lists", annotations: map[string]string{"whitelist-source-range": "127.0.0.0/8", "denylist-source-range": "10.6.6.0/24"},
			location: "deny 10.6.6.0/24; allow 127.0.0.0/8; deny all;"},
		{name: "body-size", annotations: map[string]string{"proxy-body-size": "8m"}, location: "client_max_body_size 8m;"},
		{name: "rewrite", annotations: map[string]string{"rewrite-target": "/$2"}, location: `rewrite "(?i)` + rewrittenPath + `" /$2 break;`},
		{name: "affinity", annotations: map[string]string{"affinity": "cookie"},
			http:     `map $cookie_INGRESSCOOKIE $sticky { default ""; "" "INGRESSCOOKIE=$request_id; Path=/; HttpOnly"; }`,
			location: "add_header Set-Cookie $sticky always;"},
	}
	all := optionSet{name: "all", annotations: map[string]string{}}
	for _, s := range sets {
		maps.Copy(all.annotations, s.annotations)
		all.http, all.location, all.fields = all.http+s.http, all.location+s.location, append(all.fields, s.fields...)
	}
	return append(sets, all,
		optionSet{name: "basic-auth", annotations: map[string]string{"auth-type": "basic", "auth-secret": "users", "auth-realm": "Staff"},
			location: `auth_basic Staff; auth_basic_user_file DIR/users; proxy_set_header Authorization "";`,
			fields:   []string{"Authorization: Basic YW5uOnRlc3Q="}})
}

// users is a file of nginx's: ann, whose password is "test".
const users = "ann:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=\n"

// optionsNamed returns a set; "" is nothing at all.
func optionsNamed(name string) (optionSet, error) {
	if name == "" {
		return optionSet{}, nil
	}
	sets := optionSets()
	i := slices.IndexFunc(sets, func(s optionSet) bool { return s.name == name })
	if i < 0 {
		return optionSet{}, fmt.Errorf("there are no options %q", name)
	}
	return sets[i], nil
}

// place is nginx's location of a set: that of a pattern where ours is one.
func (s *optionSet) place() string {
	if s.annotations["rewrite-target"] != "" {
		return `~* "^` + rewrittenPath + `"`
	}
	return "/"
}

// config fills in where files are.
func (s *optionSet) config(text, dir string) string { return strings.ReplaceAll(text, "DIR", dir) }

// put gives an Ingress the options of the set.
func (s *optionSet) put(files *cluster.Files, ing *networkingv1.Ingress) {
	if s.name == "" {
		files.Put(ing)
		return
	}
	kind := networkingv1.PathTypePrefix
	path := "/"
	if s.annotations["rewrite-target"] != "" {
		kind, path = networkingv1.PathTypeImplementationSpecific, rewrittenPath
	}
	ing.Annotations = map[string]string{}
	for key, value := range s.annotations {
		ing.Annotations[route.NginxPrefix+key] = value
	}
	ing.Spec.Rules = []networkingv1.IngressRule{{IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
		Paths: []networkingv1.HTTPIngressPath{{Path: path, PathType: &kind, Backend: *ing.Spec.DefaultBackend}},
	}}}}
	ing.Spec.DefaultBackend = nil
	files.Put(ing, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "users"}, Data: map[string][]byte{"auth": []byte(users)}})
}

package migrate

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// guarded is an Ingress behind an authentication service, with annotations beside auth-url.
func guardedBy(t *testing.T, annotations map[string]string) (said, notes []string) {
	t.Helper()
	meta := Meta{Namespace: "default", Name: "web", Annotations: map[string]string{prefix + "auth-url": "http://auth.sso.svc.cluster.local:9000/check"}}
	for key, value := range annotations {
		meta.Annotations[prefix+key] = value
	}
	meta, beside, notes := withoutSnippets(meta, oneRule(), true)
	for _, key := range slices.Sorted(maps.Keys(meta.Annotations)) {
		if key != prefix+"auth-url" {
			said = append(said, strings.TrimPrefix(key, prefix)+"="+meta.Annotations[key])
		}
	}
	if len(beside) > 0 {
		t.Errorf("Ingresses beside: %v", beside)
	}
	return said, append(notes, judge(meta, oneRule())...)
}

// TestAuthSnippet: what the guides of authentication services have people write becomes
// options; anything else stays, and is told.
func TestAuthSnippet(t *testing.T) {
	const stays = "stays"
	for _, c := range []struct {
		text string
		want []string
	}{
		{"proxy_set_header X-Forwarded-Host $http_host;", nil},                                                                         // Authentik
		{"proxy_set_header X-Forwarded-Method $request_method;", []string{"auth-request-headers=X-Forwarded-Method: $request_method"}}, // Authelia
		{"proxy_set_header X-Forwarded-Host $host; proxy_set_header X-Original-URL $scheme://$http_host$request_uri; proxy_set_header X-Forwarded-Proto $scheme;",
			[]string{"auth-request-headers=X-Original-URL: $scheme://$http_host$request_uri\nX-Forwarded-Proto: $scheme"}},
		{"proxy_pass_request_body off;\nproxy_set_header Content-Length \"\";\nproxy_set_header Cookie \"\";", []string{"auth-request-headers=Cookie:"}},
		{"proxy_set_header X-Tenant \"a b\";", []string{"auth-request-headers=X-Tenant: a b"}},
		{"proxy_set_header Host $http_host;", []string{stays}},
		{"proxy_set_header X-A $nothing;", []string{stays}},
		{"proxy_set_header X-Forwarded-Host $host; if ($request_method = OPTIONS) { return 200; }", []string{stays}},
		{"proxy_pass_request_body on;", []string{stays}},
		{"proxy_set_header X-A;", []string{stays}},
		{"proxy_set_header", []string{stays}},
	} {
		want := c.want
		if slices.Equal(want, []string{stays}) {
			want = []string{"auth-snippet=" + c.text}
		}
		said, notes := guardedBy(t, map[string]string{"auth-snippet": c.text})
		if !slices.Equal(said, want) || len(notes) != 1 {
			t.Errorf("%q comes to %q, want %q; told %q", c.text, said, want, notes)
		}
	}
	if said, notes := guardedBy(t, map[string]string{"auth-snippet": " "}); len(said) != 1 || len(notes) > 0 {
		t.Errorf("an empty one comes to %q, told %q", said, notes)
	}
}

// TestVariablesOfAnswers: what auth_request_set makes of an answer is a field of it here, in
// the place to sign in and in what requests and responses are given.
func TestVariablesOfAnswers(t *testing.T) {
	vouch := "# used by the place to sign in\nauth_request_set $auth_resp_jwt $upstream_http_x_vouch_jwt;\nauth_request_set $auth_resp_err $upstream_http_x_vouch_err;"
	said, notes := guardedBy(t, map[string]string{"auth-snippet": vouch,
		"auth-signin": "https://vouch.test/login?url=$scheme://$http_host$request_uri&X-Vouch-Token=$auth_resp_jwt&error=${auth_resp_err}"})
	want := "auth-signin=https://vouch.test/login?url=$scheme://$http_host$request_uri&X-Vouch-Token=$upstream_http_x_vouch_jwt&error=$upstream_http_x_vouch_err"
	if !slices.Equal(said, []string{want}) {
		t.Errorf("%q, told %q", said, notes)
	}

	for _, c := range []struct {
		text, copied string
		want         []string
	}{
		{"auth_request_set $token $upstream_http_authorization; proxy_set_header Authorization $token;", "X-A", []string{"auth-response-headers=X-A,Authorization"}},
		{"proxy_set_header X-User $user; auth_request_set $user $upstream_http_x_auth_request_user; add_header X-Who \"it is ${user}\" always;", "",
			[]string{"auth-response-headers=X-Auth-Request-User", "request-headers=X-User: $http_x_auth_request_user", "response-headers=X-Who: it is $http_x_auth_request_user"}},
		{"auth_request_set $user $upstream_http_x_user; proxy_set_header X-User $username;", "", []string{
			"configuration-snippet=auth_request_set $user $upstream_http_x_user; proxy_set_header X-User $username;"}},
	} {
		annotations := map[string]string{"configuration-snippet": c.text}
		if c.copied != "" {
			annotations["auth-response-headers"] = c.copied
		}
		if said, notes := guardedBy(t, annotations); !slices.Equal(said, c.want) {
			t.Errorf("%q comes to %q, want %q; told %q", c.text, said, c.want, notes)
		}
	}
}

// TestGlobalAuthSnippet: the snippet of the ConfigMap becomes keys of it.
func TestGlobalAuthSnippet(t *testing.T) {
	for text, want := range map[string]string{
		"proxy_set_header X-Forwarded-Host $host;": "# proxy.config: global-auth-snippet is left out: proxy_set_header X-Forwarded-Host $host: it is sent unasked\n" +
			"# proxy.config: option global-auth-signin is not understood: variable $err is not known, so every request of every route gets a 503; remove it if they may be open\n" +
			"proxy:\n  config:\n    global-auth-signin: https://a.test/?e=$err\n",
		"auth_request_set $err $upstream_http_x_err; proxy_set_header X-A a;": "# proxy.config: global-auth-snippet has become global-auth-signin and global-auth-request-headers\n" +
			"proxy:\n  config:\n    global-auth-request-headers: 'X-A: a'\n    global-auth-signin: https://a.test/?e=$upstream_http_x_err\n",
	} {
		values, err := ReadChart(IngressNginxChart, []byte("controller: {config: {global-auth-signin: 'https://a.test/?e=$err', global-auth-snippet: '"+text+"'}}"))
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		if err := values.WriteYAML(&got); err != nil || got.String() != want {
			t.Errorf("%q comes to\n%s%v, want\n%s", text, got.String(), err, want)
		}
	}
}

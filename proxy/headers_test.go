package proxy_test

import (
	"fmt"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
)

func configMap(name string, pairs ...string) *corev1.ConfigMap {
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{}}
	for i := 0; i < len(pairs); i += 2 {
		m.Data[pairs[i]] = pairs[i+1]
	}
	return m
}

// TestCustomHeaders: the key custom-headers follows its ConfigMap, and closes
// without it.
func TestCustomHeaders(t *testing.T) {
	files, p := start(t, nil)
	addr := bound(p, false)
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", echo(t, "web")),
		configMap("headers", "X-Frame-Options", "DENY", "x-tea", "green; hot"), configMap("framing", "Transfer-Encoding", "chunked"),
		configMap("lines", "X-A", "b\r\nX-C: d"),
		annotated("good", "good.test", map[string]string{"custom-headers": "default/headers"}),
		service("empty", corev1.ServicePort{Port: 80}), annotated("empty", "empty.test", map[string]string{"custom-headers": "default/headers", "service": "empty"}),
		annotated("elsewhere", "elsewhere.test", map[string]string{"custom-headers": "kube-system/headers"}),
		annotated("framing", "framing.test", map[string]string{"custom-headers": "framing"}),
		annotated("lines", "lines.test", map[string]string{"custom-headers": "default/lines"}))
	says := func(host string, want int, text string) func() bool {
		return func() bool {
			status, said := ask(t, addr, host, "/")
			return status == want && strings.Contains(said, text)
		}
	}
	eventually(t, "its fields are set", says("good.test", 200, "X-Frame-Options: DENY\r\nX-Tea: green; hot"))
	eventually(t, "without an endpoint, too", says("empty.test", 503, "X-Frame-Options: DENY\r\nX-Tea: green; hot"))
	eventually(t, "another namespace is refused", says("elsewhere.test", 503, "another namespace"))
	eventually(t, "framing is refused", says("framing.test", 503, "Transfer-Encoding"))
	eventually(t, "line breaks are refused", says("lines.test", 503, "control characters"))
	files.Put(configMap("headers", "X-Frame-Options", "SAMEORIGIN"))
	eventually(t, "a change of the ConfigMap is followed", says("good.test", 200, "X-Frame-Options: SAMEORIGIN"))
	files.Delete(snapshot.ConfigMap, snapshot.Key{Namespace: "default", Name: "headers"})
	eventually(t, "the route closes without it", says("good.test", 503, "does not exist"))
}

// TestGlobalHeaders: the keys add-headers and proxy-set-headers follow the ConfigMaps
// that they name, and custom-headers comes on top.
func TestGlobalHeaders(t *testing.T) {
	files, p := start(t, func(o *proxy.Options) { o.Routes.ConfigMap = snapshot.Key{Namespace: "default", Name: "wide"} })
	addr := bound(p, false)
	web := httptest.NewServer(listing())
	defer web.Close()
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", strings.TrimPrefix(web.URL, "http://")),
		configMap("wide", "add-headers", "default/responses", "proxy-set-headers", "default/requests", "location-snippet", "proxy_set_header X-Placed $host;"),
		configMap("responses", "X-Id", "$req_id", "X-One", "1", "X-Two", "2", "X-Zoo", "$$zoo"), configMap("requests", "X-Request-Start", "t=${msec}", "X-Where", "$host$uri", "X-Own", "", "X-Fixed", "yes"), configMap("top", "X-Two", "two"),
		annotated("plain", "plain.test", nil), annotated("top", "top.test", map[string]string{"custom-headers": "default/top"}),
		annotated("named", "named.test", map[string]string{"from-to-www-redirect": "true"}), annotated("closed", "closed.test", map[string]string{"service": "never-made"}))
	says := func(host, text, not string) func() bool {
		return func() bool {
			status, said := ask(t, addr, host, "/x\nX-Own: mine\nX-Fixed: no")
			return status == 200 && strings.Contains(said, text) && !strings.Contains(said, not)
		}
	}
	eventually(t, "add-headers acts", says("plain.test", "X-One: 1\r\nX-Two: 2\r\n", "X-Two: two"))
	eventually(t, "variables act", func() bool {
		_, said := ask(t, addr, "plain.test", "/x")
		return regexp.MustCompile(`X-Request-Start: t=[1-9][0-9]{9}\.[0-9]{3}\r\n`).MatchString(said) &&
			regexp.MustCompile(`X-Id: [0-9a-f]{32}\r\n`).MatchString(said) && strings.Contains(said, "X-Zoo: $$zoo\r\n")
	})
	eventually(t, "proxy-set-headers acts", says("plain.test", "X-Where: plain.test/x\r\n", "X-Own: mine"))
	eventually(t, "beside location-snippet", says("plain.test", "X-Placed: plain.test\r\n", "X-Own: mine"))
	eventually(t, "it replaces", says("plain.test", "X-Fixed: yes\r\n", "X-Fixed: no"))
	eventually(t, "custom-headers comes on top", says("top.test", "X-One: 1\r\nX-Two: two\r\n", "X-Two: 2"))
	eventually(t, "add-headers acts without a route", func() bool {
		status, said := ask(t, addr, "nobody.test", "/x")
		return status == 404 && strings.Contains(said, "X-One: 1\r\n") && regexp.MustCompile(`X-Id: [0-9a-f]{32}\r\n`).MatchString(said)
	})
	eventually(t, "and where a route is closed", func() bool {
		status, said := ask(t, addr, "closed.test", "/x")
		return status == 503 && strings.Contains(said, "X-One: 1\r\n")
	})
	eventually(t, "and on redirects to another name", func() bool {
		status, said := ask(t, addr, "www.named.test", "/x")
		return status == 308 && strings.Contains(said, "X-One: 1\r\n")
	})
	files.Put(configMap("wide", "add-headers", "default/responses", "proxy-set-headers", "default/requests", "block-user-agents", "evil"))
	eventually(t, "and where all routes are closed", func() bool {
		status, said := ask(t, addr, "plain.test", "/x\nUser-Agent: evil")
		return status == 403 && strings.Contains(said, "X-One: 1\r\n")
	})
	files.Put(configMap("responses", "X-One", "one"))
	eventually(t, "a change is followed", says("plain.test", "X-One: one\r\n", "X-Two"))
	problem := func(what string) func() bool {
		return func() bool {
			st, _ := p.State().(proxy.State)
			return strings.Contains(fmt.Sprint(st.Problems), what)
		}
	}
	files.Put(configMap("requests", "X-Own", "$nothing", "X-Fixed", "yes"))
	eventually(t, "what is not understood is not sent", says("plain.test", "X-Fixed: yes\r\n", "X-Own"))
	eventually(t, "which is told", problem("has a value for X-Own that is not understood (variable $nothing is not known)"))
	files.Put(configMap("requests", "Host", "evil.test"))
	eventually(t, "the Host is not to be had", says("plain.test", "X-Own: mine", "evil.test"))
	eventually(t, "which is told", problem("option proxy-set-headers has no effect"))
}

// TestRequestHeaders: request-headers act for one Ingress, on top of proxy-set-headers.
func TestRequestHeaders(t *testing.T) {
	testFields(t, map[string]string{
		"request-headers": "X-Script-Name: /in$uri\n\n  X-Fixed : no\nX-Fixed: own\nX-Gone:\nX-Bad: $nothing\nHost: evil.test\nContent-Length: 7\nX-Forwarded-Proto: https\nX-Real-IP: 192.0.2.1\n",
	}, fieldsTest{
		says: []string{"X-Forwarded-Proto: https\r\n", "X-Real-Ip: 192.0.2.1\r\n", "X-Script-Name: /in/x\r\n", "X-Fixed: own\r\n", "X-Other: all\r\n"},
		not:  []string{"mine", "evil", "X-Fixed: yes"},
		told: []string{"request-headers acts in part", `"X-Fixed : no" is no field`, "Host may not be set here", "Content-Length may not be set", "has a value for X-Bad that is not understood"},
	})
}

// TestResponseHeaders: response-headers act for one Ingress, on top of add-headers and
// custom-headers, and take fields out, ours too.
func TestResponseHeaders(t *testing.T) {
	testFields(t, map[string]string{
		"custom-headers":   "default/top",
		"response-headers": "X-One: own\nX-Two: barred\nX-Three: $host\nContent-Type:\nServer:",
	}, fieldsTest{
		says: []string{"X-One: own\r\n", "X-Two: 2\r\n", "X-Three: own.test\r\n"},
		not:  []string{"X-One: 1", "Content-Type:", "Server:"},
		told: []string{"response-headers acts in part", "global-allowed-response-headers of the proxy leaves out X-Two"},
	})
}

// TestConfigurationSnippet: a configuration-snippet of fields acts for one Ingress, beneath its own
// options.
func TestConfigurationSnippet(t *testing.T) {
	testFields(t, map[string]string{
		"configuration-snippet": "more_set_headers 'X-One: own' \"X-Three: $host\";\nproxy_set_header X-Fixed own; # why\nproxy_set_header X-Script-Name /in$uri;\nproxy_buffering off;",
		"request-headers":       "X-Script-Name: /of/option",
		"response-headers":      "X-Three: $host/option",
	}, fieldsTest{
		says: []string{"X-One: own\r\n", "X-Three: own.test/option\r\n", "X-Fixed: own\r\n", "X-Script-Name: /of/option\r\n"},
		not:  []string{"X-One: 1", "X-Fixed: yes", "/in/x"},
	})
}

type fieldsTest struct {
	says, not []string // what own.test answers
	told      []string
}

// testFields gives one Ingress options about fields beside those of all Ingresses.
func testFields(t *testing.T, options map[string]string, want fieldsTest) {
	t.Helper()
	files, p := start(t, func(o *proxy.Options) { o.Routes.ConfigMap = snapshot.Key{Namespace: "default", Name: "wide"} })
	addr := bound(p, false)
	web := httptest.NewServer(listing())
	defer web.Close()
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", strings.TrimPrefix(web.URL, "http://")),
		configMap("wide", "add-headers", "default/responses", "proxy-set-headers", "default/requests", "global-allowed-response-headers", "X-One,X-Three,Content-Type,Server"),
		configMap("responses", "X-One", "1", "X-Two", "2"), configMap("requests", "X-Fixed", "yes", "X-Other", "all"), configMap("top", "X-One", "top"),
		annotated("plain", "plain.test", nil), annotated("own", "own.test", options))
	eventually(t, "the fields of one Ingress", func() bool {
		status, said := ask(t, addr, "own.test", "/x\nX-Gone: mine\nX-Bad: mine\nX-Script-Name: mine\nX_Script_Name: mine")
		has := func(text string) bool { return strings.Contains(said, text) }
		return status == 200 && !slices.ContainsFunc(want.not, has) && !slices.ContainsFunc(want.says, func(text string) bool { return !has(text) })
	})
	if _, said := ask(t, addr, "plain.test", "/x\nX-Gone: mine"); strings.Contains(said, "own") || !strings.Contains(said, "X-Gone: mine") {
		t.Errorf("another Ingress has them, too: %s", said)
	}
	st, _ := p.State().(proxy.State)
	for _, what := range want.told {
		if told := fmt.Sprint(st.Problems); !strings.Contains(told, what) {
			t.Errorf("not told: %s\n%s", what, told)
		}
	}
}

// TestFieldNames: fields whose names are unusual come through as ignore-invalid-headers and
// enable-underscores-in-headers say, by default as ingress-nginx has it in its classes alone.
func TestFieldNames(t *testing.T) {
	files, p := start(t, func(o *proxy.Options) {
		o.Routes.ConfigMap, o.Routes.Classes.Adopt = snapshot.Key{Namespace: "default", Name: "wide"}, []string{ingressclass.NginxController}
	})
	web := httptest.NewServer(listing())
	defer web.Close()
	adopted := annotated("adopted", "adopted.test", nil)
	adopted.Spec.IngressClassName = new(ingressclass.NginxName)
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", strings.TrimPrefix(web.URL, "http://")), annotated("own", "own.test", nil), adopted)
	for _, c := range []struct {
		key          string
		options      []string
		own, adopted string // those that come through
	}{
		{"ignore-invalid-headers", nil, "X-1 X.2 X_3", "X-1"},
		{"enable-underscores-in-headers", []string{"enable-underscores-in-headers", "true"}, "X-1 X.2 X_3", "X-1 X_3"},
		{"ignore-invalid-headers", []string{"ignore-invalid-headers", "false"}, "X-1 X.2 X_3", "X-1 X.2 X_3"},
		{"ignore-invalid-headers", []string{"ignore-invalid-headers", "true"}, "X-1", "X-1"},
		{"enable-underscores-in-headers", []string{"ignore-invalid-headers", "true", "enable-underscores-in-headers", "true"}, "X-1 X_3", "X-1 X_3"},
		{"ignore-invalid-headers", []string{"ignore-invalid-headers", "perhaps"}, "X-1 X.2 X_3", "X-1"},
	} {
		files.Put(configMap("wide", c.options...))
		for host, want := range map[string]string{"own.test": c.own, "adopted.test": c.adopted} {
			eventually(t, fmt.Sprintf("%s: %v: %s is sent %s", c.key, c.options, host, want), func() bool {
				status, said := ask(t, bound(p, false), host, "/\nX-1: a\nX.2: b\nX_3: c")
				came := regexp.MustCompile(`X.[123]`).FindAllString(said, -1)
				return status == 200 && strings.Join(came, " ") == want
			})
		}
	}
}

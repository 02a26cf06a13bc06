package proxy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
	"quayside.io/proxy/accesslog"
)

// What the options say about the log, it does from then on.
func TestLogOptions(t *testing.T) {
	format, err := accesslog.Named("plain $request_uri", nil)
	if err != nil {
		t.Fatal(err)
	}
	log := &logFile{}
	files, p := start(t, func(o *proxy.Options) {
		o.Routes.ConfigMap = snapshot.Key{Namespace: "default", Name: "wide"}
		o.AccessLog = proxy.AccessLog{Format: format, Share: 1, To: log}
	})
	files.Put(configMap("wide"), service("web", corev1.ServicePort{Port: 80}), slice("web", "", echo(t, "web")), annotated("web", "a.test", nil),
		annotated("quiet", "quiet.test", map[string]string{"enable-access-log": "false"}))
	routed(t, p, "a.test")
	routed(t, p, "quiet.test")
	sent := 0
	// logs sends a request, and one that is logged whatever the options say after they
	// are gone; it returns the lines about the first.
	logs := func(host, target string, any bool, options ...string) (lines []string) {
		t.Helper()
		sent++
		first, last := fmt.Sprintf("%s?n=%d", target, sent), fmt.Sprintf("/last-%d", sent)
		files.Put(configMap("wide", options...))
		off, own := slices.Contains(options, "true") && len(options) == 2, slices.Contains(options, "log-format-upstream") && !strings.Contains(options[1], "nobody")
		eventually(t, "the options are in force", func() bool {
			l := p.Table().Front.Log
			return l.Off == off && (l.Format != nil) == own && (len(l.Skip) > 0) == slices.Contains(options, "skip-access-log-urls")
		})
		ask(t, bound(p, false), host, first+"\nX-Say: a\"b")
		files.Put(configMap("wide"))
		eventually(t, "what comes after is logged", func() bool {
			ask(t, bound(p, false), "a.test", last)
			return slices.ContainsFunc(log.lines(), func(line string) bool { return strings.HasPrefix(line, "plain "+last) })
		})
		eventually(t, "what is to be logged is", func() bool {
			lines = slices.DeleteFunc(log.lines(), func(line string) bool { return !strings.Contains(line, fmt.Sprintf("n=%d", sent)) })
			return !any || len(lines) > 0
		})
		return lines
	}
	for _, c := range []struct {
		key     string
		host    string
		options []string
		want    string // empty: nothing is logged
	}{
		{"none", "a.test", nil, "plain /x?n=1"},
		{"enable-access-log", "quiet.test", nil, ""},
		{"disable-access-log", "a.test", []string{"disable-access-log", "true"}, ""},
		{"disable-http-access-log", "a.test", []string{"disable-http-access-log", "true"}, ""},
		{"skip-access-log-urls", "a.test", []string{"skip-access-log-urls", "/y,~^/x"}, ""},
		{"skip-access-log-urls", "a.test", []string{"skip-access-log-urls", "/y"}, "plain /x?n=6"},
		{"log-format-upstream", "a.test", []string{"log-format-upstream", "mine $args $http_x_say"}, `mine n=7 a\x22b`},
		{"log-format-escape-json", "a.test", []string{"log-format-upstream", "mine $args $http_x_say", "log-format-escape-json", "true"}, `mine n=8 a\"b`},
		{"log-format-upstream", "a.test", []string{"log-format-upstream", "mine $args $nobody_knows"}, "plain /x?n=9"},
	} {
		if got := strings.Join(logs(c.host, "/x", c.want != "", c.options...), "\n"); got != c.want {
			t.Errorf("%s: logged %q, want %q", c.key, got, c.want)
		}
	}
}

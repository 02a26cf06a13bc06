package e2e

import (
	"fmt"
	"strings"
	"testing"

	"quayside.io/test/lab"
)

// Where the chart allows it, an Ingress has its firewall from a pod with the chart's
// memory and a root that is read-only: heads and bodies are judged by its own rules and
// the core rules, the log has their numbers, and other routes are as ever. One that asks
// for rules that it may not have is closed.
func TestFirewallOfTheChart(t *testing.T) {
	beside(t)
	e := edge{bare(t), t}
	e.Install(lab.Values{
		"speaker": lab.Values{"enabled": false},
		"proxy":   lab.Values{"replicas": 1, "gracePeriodSeconds": 10, "modsecurity": true},
	})
	e.serve("shop")
	const prefix = "nginx.ingress.kubernetes.io/"
	on := func(rules string) string {
		return fmt.Sprintf(`%[1]senable-modsecurity: "true", %[1]senable-owasp-core-rules: "true", %[1]smodsecurity-snippet: %[2]q`, prefix, rules)
	}
	route := func(name, annotations string) string {
		return "---" + ingressFor(name, "ingressClassName: quayside", annotations, name+".example.com", "shop")
	}
	e.Apply(clusterIPServices("shop") +
		route("guarded", on(`SecRuleEngine On
SecRule ARGS:word "@streq secret" "id:1234,phase:2,deny,status:406,log,msg:'no secrets'"`)) +
		route("watched", on("SecRuleEngine DetectionOnly")) +
		route("barred", on("SecRuleEngine On\nInclude /etc/passwd")) +
		route("open", ""))
	proxy := e.Quayside().Proxies()[0]
	const attack = "/?id=1%27%20OR%20%271%27=%271%27%20--%20"
	for _, k := range []struct {
		host, path, form string
		status           int
	}{
		{"guarded", "/?q=boats", "", 200},
		{"guarded", attack, "", 403},
		{"guarded", "/?word=secret", "", 406},
		{"guarded", "/", "word=secret", 406},
		{"guarded", "/", "word=harmless", 200},
		{"watched", attack, "", 200},
		{"barred", "/", "", 503},
		{"open", attack, "", 200},
	} {
		with := []lab.RequestOption{lab.Via(proxy.IP() + ":8080"), lab.Header("User-Agent", "Mozilla/5.0"), lab.Header("Accept", "*/*")}
		if k.form != "" {
			with = append(with, lab.Method("POST", k.form), lab.Header("Content-Type", "application/x-www-form-urlencoded"))
		}
		e.Eventually(settle, func() error { // until the rules are compiled
			resp, err := proxy.Try("http://"+k.host+".example.com"+k.path, with...)
			if err == nil && resp.Status != k.status {
				err = fmt.Errorf("%s%s %s is answered %d, want %d: %s", k.host, k.path, k.form, resp.Status, k.status, resp.Body)
			}
			return err
		})
	}
	for _, rule := range []string{"942100", "1234"} {
		e.Eventually(settle, func() error {
			if !strings.Contains(proxy.Log(), rule) {
				return fmt.Errorf("the log does not have rule %s", rule)
			}
			return nil
		})
	}
	if n := proxy.Restarts(); n != 0 {
		t.Errorf("the proxy was started %d times again", n)
	}
}

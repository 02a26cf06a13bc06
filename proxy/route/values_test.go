package route

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/ingressclass"
)

// Values as people write them, which ingress-nginx takes.
func TestValuesOfUsers(t *testing.T) {
	for _, c := range []struct {
		key, value string
		holds      func(s *settings) bool
	}{
		{"auth-response-headers", "X-User, X-Email,", func(s *settings) bool { return slices.Equal(s.external.Copy, []string{"X-User", "X-Email"}) }},
		{"cors-allow-origin", "https://a.test, https://*.b.test,", func(s *settings) bool {
			return slices.Equal(s.cors.Origins, []string{"https://a.test", "https://*.b.test"})
		}},
		{"cors-allow-methods", "GET, PUT, ", func(s *settings) bool { return s.cors.Methods == "GET, PUT" }},
		{"cors-allow-headers", "X-A,X-B,", func(s *settings) bool { return s.cors.Headers == "X-A,X-B" }},
		{"cors-expose-headers", "*", func(s *settings) bool { return s.cors.Expose == "*" }},
		{"session-cookie-samesite", "none", func(s *settings) bool { return s.sessions.cookie.SameSite == "None" }},
		{"session-cookie-samesite", "LAX", func(s *settings) bool { return s.sessions.cookie.SameSite == "Lax" }},
		{"denylist-source-range", "::ffff:10.0.0.1, ::ffff:192.168.7.9/120, fd00::/8, ::ffff:0:0/90", func(s *settings) bool {
			return fmt.Sprint(s.filters.Access.Deny) == "[10.0.0.1/32 192.168.7.0/24 fd00::/8 ::ffc0:0:0/90]"
		}},
		{"proxy-read-timeout", "604800", func(s *settings) bool { return s.forwarding.ReadTimeout == 7*24*time.Hour }},
		{"proxy-send-timeout", "31536000s", func(s *settings) bool { return s.forwarding.SendTimeout == 365*24*time.Hour }},
	} {
		given := map[string]string{NginxPrefix + c.key: c.value}
		if c.key == "auth-response-headers" {
			given[NginxPrefix+"auth-url"] = "http://auth.test/"
		}
		s, findings := optionsOf(optionTable, given, defaults(ingressclass.Class{Nginx: true}), noRefs{})
		if !c.holds(s) || s.closed != "" || len(findings) > 0 {
			t.Errorf("%s: %q is not taken: %v", c.key, c.value, findings)
		}
	}
	for key, value := range map[string]string{"cors-allow-origin": " , ", "cors-allow-methods": ",", "session-cookie-samesite": "no", "proxy-read-timeout": "99999999999"} {
		if _, findings := optionsOf(optionTable, map[string]string{NginxPrefix + key: value}, defaults(ingressclass.Class{}), noRefs{}); len(findings) != 1 {
			t.Errorf("%s: %q is told by %v", key, value, findings)
		}
	}
}

// A hash that came from a file has the end of its line; what would be another line has none.
func TestUsersOfAMap(t *testing.T) {
	s := &corev1.Secret{Data: map[string][]byte{"ann": []byte("{SHA}x\n"), "bob": []byte("{SHA}y\r\n"), "cid": []byte("{SHA}z\neve:{SHA}w"), "dot": []byte("{SHA}v")}}
	if got := string(htpasswd(s, "auth-map")); got != "ann:{SHA}x\nbob:{SHA}y\ndot:{SHA}v\n" {
		t.Errorf("%q", got)
	}
}

package route

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"quayside.io/proxy/balance"
	"quayside.io/proxy/filter"
)

// is reports whether t was read from a text.
func is(t *filter.Template, text string) bool {
	want, err := filter.ParseTemplate(text)
	return err == nil && reflect.DeepEqual(t, want)
}

// A name that is none takes no other away.
func TestAliasesThatAreNoNames(t *testing.T) {
	for value, want := range map[string]struct {
		aliases []string
		says    string
	}{
		`a.test, ~^b\d, *.c.test`: {[]string{"a.test", "*.c.test"}, "acts in part: \"~^b"},
		`~^b\d`:                   {nil, "has no effect: \"~^b"},
		"a.test":                  {[]string{"a.test"}, ""},
	} {
		var s settings
		o := option{key: "server-alias", effect: applied, parse: parseAliases}
		f, told := o.apply("server-alias", value, &s)
		if !slices.Equal(s.aliases, want.aliases) || told != (want.says != "") || !strings.Contains(f.message, want.says) {
			t.Errorf("%s: %q, %q", value, s.aliases, f.message)
		}
	}
}

// What an annotation says holds, also where it is what nobody has to say and the ConfigMap
// says otherwise.
func TestAnnotationsOverrideTheConfigMap(t *testing.T) {
	for _, c := range []struct {
		wide, own map[string]string
		holds     func(s *settings) bool
	}{
		{map[string]string{"load-balance": "ewma"}, nil, func(s *settings) bool { return s.policy.Algorithm == balance.PeakEWMA }},
		{map[string]string{"load-balance": "ewma"}, map[string]string{"load-balance": "round_robin"}, func(s *settings) bool { return s.policy.Algorithm == balance.RoundRobin }},
		{map[string]string{"load-balance": "ewma"}, map[string]string{"load-balance": "round_robin", "upstream-hash-by": "$remote_addr"},
			func(s *settings) bool { return s.policy.Algorithm == balance.Hash }},
		{nil, map[string]string{"load-balance": "round_robin", OwnPrefix + "upstream-hash-by": "$remote_addr"}, func(s *settings) bool { return s.policy.Algorithm == balance.Hash }},
		{map[string]string{"service-upstream": "true"}, nil, func(s *settings) bool { return s.serviceAddress }},
		{map[string]string{"service-upstream": "true"}, map[string]string{"service-upstream": "false"}, func(s *settings) bool { return !s.serviceAddress }},
		{map[string]string{"force-ssl-redirect": "true"}, nil, func(s *settings) bool { return s.tls.want() == redirectAlways }},
		{map[string]string{"force-ssl-redirect": "true"}, map[string]string{"ssl-redirect": "false"}, func(s *settings) bool { return s.tls.want() == redirectAlways }},
		{map[string]string{"force-ssl-redirect": "true"}, map[string]string{"force-ssl-redirect": "false"}, func(s *settings) bool { return s.tls.want() == redirectIfTLS }},
		{map[string]string{"force-ssl-redirect": "true"}, map[string]string{"force-ssl-redirect": "false", "ssl-redirect": "false"}, func(s *settings) bool { return s.tls.want() == redirectNever }},
		{map[string]string{"force-ssl-redirect": "true", "ssl-redirect": "false"}, map[string]string{"force-ssl-redirect": "false"}, func(s *settings) bool { return s.tls.want() == redirectNever }},
		{map[string]string{"force-ssl-redirect": "true", "ssl-redirect": "false"}, map[string]string{"force-ssl-redirect": "false", "ssl-redirect": "true"},
			func(s *settings) bool { return s.tls.want() == redirectIfTLS }},
		{map[string]string{"proxy-cookie-path": "/a /b"}, nil, func(s *settings) bool { return is(s.filters.Cookies.Path.To, "/b") }},
		{map[string]string{"proxy-cookie-path": "/a /b", "proxy-cookie-domain": "a b"}, map[string]string{"proxy-cookie-path": "off"},
			func(s *settings) bool {
				return s.filters.Cookies.Path == (filter.Replacement{}) && is(s.filters.Cookies.Domain.To, "b")
			}},
		{map[string]string{"proxy-redirect-from": "http://a/", "proxy-redirect-to": "/"}, nil, func(s *settings) bool { return is(s.filters.Location.To, "/") }},
		{map[string]string{"proxy-redirect-from": "http://a/", "proxy-redirect-to": "/"}, map[string]string{"proxy-redirect-from": "off"},
			func(s *settings) bool { return s.filters.Location == (filter.Replacement{}) }},
		{nil, map[string]string{"backend-protocol": "HTTP"}, func(s *settings) bool { return s.protocol == protocol{said: true} }},
		{nil, map[string]string{"backend-protocol": ""}, func(s *settings) bool { return !s.protocol.said }},
	} {
		annotations := map[string]string{}
		for key, value := range c.own {
			if !strings.HasPrefix(key, OwnPrefix) {
				key = NginxPrefix + key
			}
			annotations[key] = value
		}
		s, findings := optionsOf(optionTable, annotations, globalOf(t, c.wide).nginx, noRefs{})
		if !c.holds(s) || len(findings) > 0 {
			t.Errorf("%v does not hold over %v: %v", c.own, c.wide, findings)
		}
	}
}

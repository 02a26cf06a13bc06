package route_test

import (
	"fmt"
	"strings"
	"testing"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/route"
)

// authenticated compiles an Ingress for a host, "" for every one, and returns its route and what
// its owner is told.
func authenticated(host string, with map[string]string) (*route.Route, string) {
	ing := plainIngress("i", host, "s", "/")
	ing.Annotations = map[string]string{}
	for key, value := range with {
		ing.Annotations[route.NginxPrefix+key] = value
	}
	table := route.Compile(snapshot.Of(plainService("s"), ing), nil, route.Options{})
	return match(table, "a.test", "/"), messages(table)
}

// TestNoClientChoosesWhomToAsk: where a rule is for every host, the host that a client names
// says nothing, and must not lead to who lets it pass, nor to where it shows its password.
func TestNoClientChoosesWhomToAsk(t *testing.T) {
	for _, c := range []struct {
		with map[string]string
		why  string // for every host it is closed; "": it is not
	}{
		{map[string]string{"auth-url": "http://auth.test/$host"}, ""},
		{map[string]string{"auth-url": "http://$host/auth"}, "leads to whatever host a client names"},
		{map[string]string{"auth-url": "https://auth.$http_host/"}, "leads to whatever host a client names"},
		{map[string]string{"auth-url": "http://auth.test/", "auth-signin": "https://login.test/?for=$host"}, ""},
		{map[string]string{"auth-url": "http://auth.test/", "auth-signin": "https://$host/login"}, "it leads to whatever host a client names"},
	} {
		for _, host := range []string{"a.test", ""} {
			r, told := authenticated(host, c.with)
			wanted := ""
			if host == "" {
				wanted = c.why
			}
			if r == nil || (r.Closed != "") != (wanted != "") || !strings.Contains(told, wanted) || wanted == "" && told != "" {
				t.Errorf("%v for the host %q: closed %v, told %q", c.with, host, r != nil && r.Closed != "", told)
			}
		}
	}
}

// TestAnswersAreRememberedForAWhile: those of ingress-nginx's default where the Ingress says none.
func TestAnswersAreRememberedForAWhile(t *testing.T) {
	for durations, want := range map[string]string{
		"":           "[{200 5m0s} {202 5m0s} {401 5m0s}]",
		"200 1m":     "[{200 1m0s}]",
		"200 401 1s": "[{200 1s} {401 1s}]",
	} {
		with := map[string]string{"auth-url": "http://auth.test/", "auth-cache-key": "$http_authorization"}
		if durations != "" {
			with["auth-cache-duration"] = durations
		}
		r, told := authenticated("a.test", with)
		if told != "" || r.Filters == nil || fmt.Sprint(r.Filters.External.CacheFor) != want {
			t.Errorf("%q: %+v, told %q", durations, r.Filters, told)
		}
	}
	if r, told := authenticated("a.test", map[string]string{"auth-url": "http://auth.test/"}); told != "" || len(r.Filters.External.CacheFor) > 0 {
		t.Errorf("without a key: %+v, told %q", r.Filters, told)
	}
}

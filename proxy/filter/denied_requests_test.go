package filter

import (
	"regexp"
	"testing"

	"quayside.io/proxy/exchange"
)

func of(t *testing.T, name string) Variable {
	t.Helper()
	v, err := ParseVariable(name)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Of several fields, cookies or arguments of a name one that is denied is enough, and one
// that is not there is empty.
func TestDeniedRequests(t *testing.T) {
	is := func(name, text string) DeniedRequest {
		return DeniedRequest{Condition{Of: of(t, name), Text: text}, 403}
	}
	isNot := func(name, text string) DeniedRequest {
		return DeniedRequest{Condition{Of: of(t, name), Not: true, Text: text}, 403}
	}
	for _, c := range []struct {
		denied DeniedRequest
		ask    []string
		want   bool
	}{
		{is("$request_method", "GET"), []string{"GET a /"}, true},
		{is("$request_method", "get"), []string{"GET a /"}, false},
		{is("$http_x_a", "2"), []string{"GET a /", "X-A: 1", "x-a: 2"}, true},
		{isNot("$http_x_a", "1"), []string{"GET a /", "X-A: 1", "x-a: 2"}, true},
		{isNot("$http_x_a", "1"), []string{"GET a /", "X-A: 1", "x-a: 1"}, false},
		{isNot("$http_x_a", "1"), []string{"GET a /"}, true},
		{is("$http_x_a", ""), []string{"GET a /"}, true},
		{is("$http_x_a", ""), []string{"GET a /", "X-A: 1"}, false},
		{is("$cookie_a", "2"), []string{"GET a /", "Cookie: a=1; b=3", "Cookie: a=2"}, true},
		{is("$arg_a", "2"), []string{"GET a /?b=2&a=1&A=2"}, true},
		{is("$arg_a", "2"), []string{"GET a /?b=2&aa=2"}, false},
		{is("$host", "a"), []string{"GET A:80 /"}, true},
		{DeniedRequest{Condition{Of: of(t, "$request_uri"), Pattern: regexp.MustCompile(`\.php`)}, 404}, []string{"GET a /x.php?y"}, true},
		{DeniedRequest{Condition{Of: of(t, "$https"), Not: true, Pattern: regexp.MustCompile("^on$")}, 404}, []string{"GET a /"}, true},
	} {
		ex := ask(c.ask[0], c.ask[1:]...)
		passed := deniedRequests([]DeniedRequest{c.denied}, Place{}).Request(ex)
		if passed == c.want || !passed && ex.Response.Status != c.denied.Status {
			t.Errorf("%q by %+v: passed %v, answered %d", c.ask, c.denied, passed, ex.Response.Status)
		}
	}
	for _, name := range []string{"", "$", "host", "$nothing", "$1", "${host}", "$host$uri", "$http_"} {
		if v, err := ParseVariable(name); err == nil {
			t.Errorf("%q is variable %+v", name, v)
		}
	}
	if got := exchange.Argument([]byte("/?a=1&a=2"), "a"); string(got) != "1" {
		t.Errorf("the first argument is %q", got)
	}
}

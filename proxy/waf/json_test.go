package waf

import (
	"strings"
	"testing"

	"quayside.io/proxy/seclang"
)

// TestNoValueOfJSONHidesAnother whose path reads the same.
func TestNoValueOfJSONHidesAnother(t *testing.T) {
	d := running(t)
	inForce(t, d, rule("evil"))
	for body, want := range map[string]int{
		`{"tags":["evil"],"tags.0":"x"}`:                   403,
		`{"user":{"name":"evil"},"user.name":"x"}`:         403,
		`{"q":"evil","q":"x"}`:                             403,
		`{"q":"x","q":"evil"}`:                             403,
		`{"q":"x","more":[1,null,true,{"r":"evi\u006c"}]}`: 403,
		`"evil"`:                 403,
		`{"q":"x","q":"y"}`:      0,
		`[]`:                     0,
		`{"q":"x"} {"q":"evil"}`: 400,
		`{"q":"x"`:               400,
		strings.Repeat("[", 5000) + "1" + strings.Repeat("]", 5000): 400,
	} {
		if v := judge(d, rule("evil"), post("application/json", body), body); v.Status != want {
			t.Errorf("%.60s: %+v, want %d", body, v, want)
		}
	}
	counted := seclang.RuleSet{Engine: seclang.On, Before: "SecRule ARGS:json.a.1.b \"@streq 1.50\" \"id:1,phase:2,deny\"\nSecRule ARGS:json.a \"@eq 3\" \"id:2,phase:2,deny\"\n"}
	inForce(t, d, counted)
	for body, want := range map[string]int{`{"a":[1,{"b":1.50}]}`: 403, `{"a":[1,2,3]}`: 403, `{"a":[1,{"b":1.5}]}`: 0} {
		if v := judge(d, counted, post("application/json", body), body); v.Status != want {
			t.Errorf("its names, %s: %+v, want %d", body, v, want)
		}
	}
}

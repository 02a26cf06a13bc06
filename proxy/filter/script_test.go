package filter

import (
	"regexp"
	"testing"
	"time"

	"quayside.io/proxy/exchange"
)

// TestAge: nginx's expires says a time and how long it is until that; less than nothing is not
// to be kept, and neither is an error.
func TestAge(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		age              time.Duration
		status           int
		expires, control string
	}{
		{time.Hour, 200, "Sat, 28 Nov 2026 13:00:00 GMT", "max-age=3600"}, {0, 304, "Sat, 28 Nov 2026 12:00:00 GMT", "max-age=0"},
		{-time.Minute, 206, "Sat, 28 Nov 2026 11:59:00 GMT", "no-cache"}, {time.Hour, 404, "", "private"},
	} {
		s := &Script{Fields: [][]FieldChange{{{Age: &c.age, Successful: true}}}}
		ex := &exchange.Exchange{}
		ex.Request.Received, ex.Response.Status = now, c.status
		ex.Response.Header.Add("Cache-Control", "private")
		Compile(&Settings{Scripts: []*Script{s}}, Host{}, Tools{}).Response(ex)
		if got, control := string(ex.Response.Header.Get("Expires")), string(ex.Response.Header.Get("Cache-Control")); got != c.expires || control != c.control {
			t.Errorf("%+v: %q, %q", c, got, control)
		}
	}
}

// TestAllocationsOfScripts: a script that has nothing to do for a request costs no memory, and
// neither do fields without variables.
func TestAllocationsOfScripts(t *testing.T) {
	if racing {
		t.Skip("the race detector allocates")
	}
	of := func(text string) Variable {
		v, err := ParseVariable(text)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	s := &Script{
		Steps: []Step{
			&If{Condition: Condition{Of: of("$request_method"), Text: "OPTIONS"}, Steps: []Step{&Return{Response: DirectResponse{Status: 204, Text: Literal("")}}}},
			&If{Condition: Condition{Of: of("$http_user_agent"), Pattern: regexp.MustCompile("(?i)(bot|spider)")}, Refuses: true, Steps: []Step{&Return{Response: DirectResponse{Status: 403, Text: Literal("")}}}},
			&Move{Rewrite: Rewrite{Pattern: regexp.MustCompile("^/old/(.*)$"), Target: Literal("/new"), Decode: true}, Ends: true},
			&Set{Variable: 0, Value: Literal("some")},
		},
		Places: []ScriptPlace{{Path: "/robots.txt", Exact: true}},
		Fields: [][]FieldChange{{{Name: "X-Frame-Options", Value: Literal("DENY")}, {Name: "X-Powered-By"}}},
	}
	chain := Compile(&Settings{Scripts: []*Script{s}}, Host{}, Tools{})
	ex := &exchange.Exchange{}
	get, path, passes := []byte("GET"), []byte("/shop"), false
	n := testing.AllocsPerRun(100, func() {
		ex.Reset()
		ex.Request.Method, ex.Request.Path, ex.Request.Target = get, path, path
		ex.Request.Header.Add("User-Agent", "curl")
		passes = chain.Request(ex)
		ex.Response.Status = 200
		ex.Response.Header.Add("X-Powered-By", "x")
		chain.Response(ex)
	})
	if n != 0 || !passes || string(ex.Response.Header.Get("X-Frame-Options")) != "DENY" || ex.Response.Header.Get("X-Powered-By") != nil {
		t.Errorf("%v allocations; passes %v, %s", n, passes, ex.Response.Header.Fields())
	}
}

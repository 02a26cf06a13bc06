package filter

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"quayside.io/proxy/exchange"
)

// oracle answers by the field X-Say of the question.
type oracle struct {
	asked int
	say   map[string]*Answer
	last  *Question
}

func (o *oracle) Ask(q *Question) (*Answer, error) {
	o.asked++
	o.last = q
	for _, h := range q.Header {
		if a := o.say[h.Value]; h.Name == "X-Say" && a != nil {
			return a, nil
		}
	}
	return nil, errors.New("silence")
}

func (o *oracle) Send(*Question) {}
func (o *oracle) Drop()          {}

func authTemplate(t *testing.T, text string) *Template {
	p, err := ParseTemplate(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestAuthAnswersAreRemembered only for as long as both sides allow.
func TestAuthAnswersAreRemembered(t *testing.T) {
	url, err := ParseAddress("http://auth.test/")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		answer Answer
		after  time.Duration
		asked  int
	}{
		{Answer{Status: 200}, 0, 1},
		{Answer{Status: 200}, 59 * time.Second, 1},
		{Answer{Status: 200}, 60 * time.Second, 2},
		{Answer{Status: 204}, 0, 2},
		{Answer{Status: 401}, 0, 1},
		{Answer{Status: 500}, 0, 2},
		{Answer{200, []Header{{"Set-Cookie", "a=b"}}}, 0, 2},
		{Answer{200, []Header{{"Vary", "Cookie"}}}, 0, 2},
		{Answer{200, []Header{{"Cache-Control", "public, no-store"}}}, 0, 2},
		{Answer{200, []Header{{"cache-control", "max-age=5"}}}, 5 * time.Second, 2},
		{Answer{200, []Header{{"Cache-Control", "max-age=5"}}}, 4 * time.Second, 1},
		{Answer{200, []Header{{"Cache-Control", "max-age=oops"}}}, 0, 2},
		{Answer{200, []Header{{"X-Padding", string(make([]byte, 5000))}}}, 0, 1}, // it is not copied, so not kept
	} {
		o := &oracle{say: map[string]*Answer{"x": &c.answer}}
		tools := tools()
		tools.Asker = o
		chain := Compile(&Settings{External: &ExternalAuth{URL: url, CacheKey: authTemplate(t, "$http_x_say"),
			CacheFor: []CacheTime{{200, time.Minute}, {401, time.Minute}}}}, Host{}, tools)
		for i := range 2 {
			ex := ask("GET a /", "X-Say: x")
			if i > 0 {
				ex.Request.Received = ex.Request.Received.Add(c.after)
			}
			passed := chain.Request(ex)
			if want := c.answer.Status < 300; passed != want {
				t.Errorf("%v: passed %v", c.answer.Status, passed)
			}
		}
		if o.asked != c.asked {
			t.Errorf("%d %.40v after %v: asked %d times, want %d", c.answer.Status, c.answer.Header, c.after, o.asked, c.asked)
		}
	}
}

// TestAnswersAreOfOneLocation: what is remembered for the path of a rule does not count below
// it, where the service may decide otherwise.
func TestAnswersAreOfOneLocation(t *testing.T) {
	url, err := ParseAddress("http://auth.test/")
	if err != nil {
		t.Fatal(err)
	}
	o := &oracle{say: map[string]*Answer{"x": {Status: 200}}}
	tools := tools()
	tools.Asker, tools.Place.Path = o, "/a"
	chain := Compile(&Settings{External: &ExternalAuth{URL: url, CacheKey: authTemplate(t, "$http_x_say"), CacheFor: []CacheTime{{200, time.Minute}}}}, Host{}, tools)
	for _, c := range []struct {
		path  string
		asked int
	}{{"/a", 1}, {"/a", 1}, {"/a/b", 2}, {"/a/c", 2}, {"/a", 2}} {
		if !chain.Request(ask("GET a "+c.path, "X-Say: x")) || o.asked != c.asked {
			t.Errorf("%s: asked %d times, want %d", c.path, o.asked, c.asked)
		}
	}
}

// TestAnswersAreBounded: what is remembered, and a large answer is not.
func TestAnswersAreBounded(t *testing.T) {
	a, now := newAnswers(), time.Unix(1000, 0)
	count := func() (n int) {
		for i := range a.shards {
			n += len(a.shards[i].byKey)
		}
		return n
	}
	for i := range 40_000 {
		a.put(answerKey{byte(i), byte(i >> 8), byte(i >> 16)}, &Answer{Status: 200}, now, now.Add(time.Hour))
	}
	if n := count(); n > answerShards*answersInShard {
		t.Errorf("%d answers are kept", n)
	}
	a = newAnswers()
	a.put(answerKey{}, &Answer{200, []Header{{"X", string(make([]byte, answerSize))}}}, now, now.Add(time.Hour))
	if count() != 0 {
		t.Error("an answer larger than all others is kept")
	}
}

// TestNobodyToAsk: a guard that cannot ask refuses.
func TestNobodyToAsk(t *testing.T) {
	url, _ := ParseAddress("http://auth.test/")
	if ex := pass(&Settings{External: &ExternalAuth{URL: url}}, ask("GET a /")); ex.Response.Status != 500 {
		t.Error(fmt.Sprint(ex.Response.Status))
	}
}

// TestFieldsOfTheClientImitateNothing: a backend that maps names to variables
// cannot tell X_User from X-User, so what only the answer, the configuration or this
// proxy may say is said by nobody else in either spelling.
func TestFieldsOfTheClientImitateNothing(t *testing.T) {
	url, err := ParseAddress("http://auth.test/")
	if err != nil {
		t.Fatal(err)
	}
	answer := &Answer{Status: 200, Header: []Header{{"X-User", "bob"}}}
	o := &oracle{say: map[string]*Answer{"x": answer}}
	tools := tools()
	tools.Asker = o
	s := &Settings{
		External:        &ExternalAuth{URL: url, Method: "POST", Copy: []string{"X-User", "X_Groups"}, Headers: []Field{{Name: "X-Gate", Value: authTemplate(t, "ours")}}},
		RequestHeaders:  []Field{{Name: "X-Tenant-ID", Value: authTemplate(t, "ours")}, {Name: "X-Nobody-Says", Value: authTemplate(t, "")}},
		ForwardedPrefix: text("/ours"),
	}
	ex := ask("GET a /x", "X-Say: x", "X_User: root", "X-Groups: wheel", "x_groups: wheel", "X-User-Agent: kept", "X_Userx: kept",
		"X_Original_URL: /public", "X-Original_URI: /public", "x_gate: forged", "X_Sent-From: me",
		"X_Tenant_ID: forged", "X-Tenant_ID: forged", "X_Nobody-Says: forged", "X_Forwarded_Prefix: /forged")
	if !Compile(s, Host{}, tools).Request(ex) {
		t.Fatal(ex.Response.Status)
	}
	sent := fields(&ex.Request.Header)
	if got, want := only(sent, "x-user", "x-groups", "x-user-agent", "x-userx", "x-tenant-id", "x-nobody-says", "x-forwarded-prefix"), []string{
		"X-Forwarded-Prefix: /ours", "X-Tenant-ID: ours", "X-User-Agent: kept", "X-User: bob", "X_Userx: kept"}; !slices.Equal(got, want) {
		t.Errorf("the upstream is sent %q, want %q", got, want)
	}
	var asked []string
	for _, h := range o.last.Header {
		asked = append(asked, h.Name+": "+h.Value)
	}
	if got, want := only(asked, "x-original-url", "x-original-uri", "x-gate", "x-sent-from"), []string{
		"X-Gate: ours", "X-Original-URI: /x", "X-Original-URL: http://a/x", "X-Sent-From: nginx-ingress-controller"}; !slices.Equal(got, want) {
		t.Errorf("the service is sent %q, want %q", got, want)
	}
}

// A field that the service sends in several lines is one list, as nginx makes of it.
func TestFieldsOfAnAnswerInSeveralLines(t *testing.T) {
	url, err := ParseAddress("http://auth.test/")
	if err != nil {
		t.Fatal(err)
	}
	tools := tools()
	tools.Asker = &oracle{say: map[string]*Answer{"x": {Status: 200, Header: []Header{{"X-Groups", "staff"}, {"X-User", "bob"}, {"x-groups", "admins"}}}}}
	ex := ask("GET a /x", "X-Say: x", "X-Groups: wheel")
	if !Compile(&Settings{External: &ExternalAuth{URL: url, Copy: []string{"X-Groups", "X-User"}}}, Host{}, tools).Request(ex) {
		t.Fatal(ex.Response.Status)
	}
	if got, want := only(fields(&ex.Request.Header), "x-groups", "x-user"), []string{"X-Groups: staff, admins", "X-User: bob"}; !slices.Equal(got, want) {
		t.Errorf("the upstream is sent %q, want %q", got, want)
	}
}

func fields(h *exchange.Header) (lines []string) {
	for _, f := range h.Fields() {
		lines = append(lines, string(f.Name)+": "+string(f.Value))
	}
	return lines
}

// only returns those of lines, sorted, whose names are among some, as CGI reads them.
func only(lines []string, names ...string) (found []string) {
	for _, line := range lines {
		name, _, _ := strings.Cut(line, ":")
		if slices.Contains(names, strings.ReplaceAll(strings.ToLower(name), "_", "-")) {
			found = append(found, line)
		}
	}
	slices.Sort(found)
	return found
}

package filter

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"slices"
	"strings"
	"time"

	"quayside.io/proxy/exchange"
)

// ExternalAuth has a service asked whether a request may pass: 2xx lets pass, 401
// and 403 refuse, everything else is an error.
type ExternalAuth struct {
	URL    *Address
	Method string // empty: GET, and the question does not say X-Original-URI
	// Signin, if not nil, is where a client is sent that gets a 401: of ParseSignin.
	Signin *Template
	// Redirect is the value of X-Auth-Request-Redirect; nil: the target.
	Redirect *Template
	// Copy are the fields of the answer that the upstream is sent. Those that a client
	// sent itself never get there.
	Copy []string
	// Headers are fields of the question beside those of the client, in the place of our
	// own of that name. One whose value is empty is not sent. Host is the one of that name.
	Headers []Field
	// AlwaysCookie passes the cookies of the answer on with every status; else only
	// with the statuses with which nginx's add_header does.
	AlwaysCookie bool
	// CacheKey, if not nil, is what answers are remembered by, for as long as CacheFor
	// says, and not longer than the answer itself allows.
	CacheKey *Template
	CacheFor []CacheTime
	// Except are paths that nobody is asked about, nor about what is below. They do
	// not end in a slash. With ByRule each is so only for rules whose path begins with it, as
	// in ingress-nginx.
	Except []string
	ByRule bool
}

// exceptFor is what Except comes to for requests that a rule with that path is for.
func (o *ExternalAuth) exceptFor(rule string) []string {
	if !o.ByRule {
		return o.Except
	}
	return slices.DeleteFunc(slices.Clone(o.Except), func(s string) bool { return !strings.HasPrefix(rule, s) })
}

// Spares reports whether nobody is asked about a path, for which there is a rule with that path.
func (o *ExternalAuth) Spares(path []byte, rule string) bool {
	return (&external{except: o.exceptFor(rule)}).excepts(path)
}

// copies reports whether the upstream is sent a field of the answer.
func (o *ExternalAuth) copies(name string) bool {
	return o != nil && slices.ContainsFunc(o.Copy, func(s string) bool { return strings.EqualFold(s, name) })
}

// Field is a field whose value has variables.
type Field struct {
	Name  string
	Value *Template
	There bool // it is set only in the place of one that is there
}

// CacheTime is how long answers with a status are remembered; status 0 is any.
type CacheTime struct {
	Status int
	For    time.Duration
}

// external is an ExternalAuth at work.
type external struct {
	ExternalAuth
	asker   Asker
	answers *Answers
	place   Place
	except  []string
	drop    []string // fields of the request that are not copied into the question, nor what imitates them
	needs   []string // fields of an answer
	sets    []Set    // variables of scripts
}

func newExternal(o *ExternalAuth, scripts []*Script, tools Tools) *external {
	e := &external{ExternalAuth: *o, asker: tools.Asker, answers: tools.Answers, place: tools.Place, except: o.exceptFor(tools.Place.Path)}
	e.drop = []string{
		"Content-Length", "Transfer-Encoding", "Expect", "Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range",
		"X-Forwarded-Proto", "X-Original-URL", "X-Original-URI", "X-Original-Method", "X-Sent-From", "X-Real-IP", "X-Forwarded-For", "X-Auth-Request-Redirect",
	}
	for _, h := range e.Headers {
		e.drop = append(e.drop, h.Name)
	}
	e.needs = append([]string{"WWW-Authenticate"}, e.Copy...)
	if e.Signin != nil {
		e.needs = append(e.needs, e.Signin.ofAnswer()...)
	}
	for _, one := range scripts {
		e.sets = append(e.sets, one.Answers...)
	}
	for _, s := range e.sets {
		e.needs = append(e.needs, s.Value.ofAnswer()...)
	}
	return e
}

// ofAnswer returns the fields of an answer that stand in t.
func (t *Template) ofAnswer() (names []string) {
	for _, p := range t.parts {
		if p.variable == answerPrefix {
			names = append(names, p.of)
		}
	}
	return names
}

// note sets the variables that an answer gives their values; nil: nobody has answered.
func (e *external) note(ex *exchange.Exchange, a *Answer) {
	at := e.place
	at.answer = a
	for _, s := range e.sets {
		ex.Script.Set(s.Variable, s.Value.append(nil, ex, &at, appendAsIs, appendClean))
	}
}

// guard asks, or remembers.
func (e *external) guard(ex *exchange.Exchange) ruling {
	if e.excepts(ex.Request.RoutedPath()) {
		return ruling{}
	}
	var key answerKey
	now := ex.Request.Received
	if e.CacheKey != nil {
		key = e.keyOf(ex)
		if a := e.answers.get(key, now); a != nil {
			return rulingOf(a)
		}
	}
	a, err := e.asker.Ask(e.question(ex))
	if err != nil {
		return ruling{status: 500}
	}
	if e.CacheKey != nil {
		a = e.relevant(a, key, now)
	}
	return rulingOf(a)
}

// excepts reports whether nobody is asked about a path. What is escaped in it may
// mean something else to a backend, and is asked about.
func (e *external) excepts(path []byte) bool {
	return len(e.except) > 0 && bytes.IndexByte(path, '%') < 0 && slices.ContainsFunc(e.except, func(s string) bool {
		return len(path) >= len(s) && string(path[:len(s)]) == s && (len(path) == len(s) || path[len(s)] == '/')
	})
}

// rulingOf is what an answer says.
func rulingOf(a *Answer) ruling {
	switch {
	case a.Status >= 200 && a.Status < 300:
		return ruling{answer: a}
	case a.Status == 401 || a.Status == 403:
		return ruling{status: a.Status, answer: a}
	}
	return ruling{status: 500, answer: a}
}

// relevant remembers what is needed of an answer, and returns that.
func (e *external) relevant(a *Answer, key answerKey, now time.Time) *Answer {
	i := slices.IndexFunc(e.CacheFor, func(c CacheTime) bool { return c.Status == a.Status || c.Status == 0 })
	if i < 0 {
		return a
	}
	kept := &Answer{Status: a.Status}
	for _, h := range a.Header {
		if slices.ContainsFunc(e.needs, func(n string) bool { return sameName(h.Name, n) }) {
			kept.Header = append(kept.Header, h)
		}
	}
	if d := lifetime(a, e.CacheFor[i].For); d > 0 {
		e.answers.put(key, kept, now, now.Add(d))
	}
	return a
}

// keyOf is the key of an exchange's answer: nothing that is remembered for one
// route, or by what the route was before, counts for another. As in ingress-nginx, where a
// rule is two locations, what is remembered for its own path does not count below that.
func (e *external) keyOf(ex *exchange.Exchange) (key answerKey) {
	h := sha256.New()
	var b []byte
	for _, part := range []string{e.place.Namespace, e.place.Ingress, e.place.Host, e.place.Path, e.Method} {
		b = append(append(b, part...), 0)
	}
	if below := string(ex.Request.RoutedPath()) != strings.TrimRight(e.place.Path, "/"); below {
		b = append(b, "below"...)
	}
	b = append(e.URL.appendURL(append(b, 0), ex, &e.place), 0)
	h.Write(e.CacheKey.appendField(b, ex, &e.place))
	h.Sum(key[:0])
	return key
}

// question is what the service is asked: the fields of the request, and what
// ingress-nginx adds to them.
func (e *external) question(ex *exchange.Exchange) *Question {
	r := &ex.Request
	q := &Question{Method: cmp.Or(e.Method, "GET"), URL: string(e.URL.appendURL(nil, ex, &e.place))}
	for _, f := range r.Header.Fields() {
		if !slices.ContainsFunc(e.drop, func(name string) bool { return imitates(f.Name, name) }) {
			q.Header = append(q.Header, Header{string(f.Name), string(appendClean(nil, f.Value))})
		}
	}
	client := r.Client.Addr().String()
	redirect := string(r.Target)
	if e.Redirect != nil {
		redirect = string(e.Redirect.appendField(nil, ex, &e.place))
	}
	q.Header = append(q.Header,
		Header{"X-Original-URL", string(scheme(r)) + "://" + string(r.AskedHost()) + string(r.Target)},
		Header{"X-Original-Method", string(r.Method)},
		Header{"X-Sent-From", "nginx-ingress-controller"}, // what services of ingress-nginx look for
		Header{"X-Real-IP", client},
		Header{"X-Forwarded-For", client},
		Header{"X-Auth-Request-Redirect", redirect})
	if e.Method != "" {
		q.Header = append(q.Header, Header{"X-Original-URI", string(r.Target)})
	}
	q.Header = slices.DeleteFunc(q.Header, func(own Header) bool {
		return slices.ContainsFunc(e.Headers, func(f Field) bool { return strings.EqualFold(f.Name, own.Name) })
	})
	for _, h := range e.Headers {
		value := string(h.Value.appendField(nil, ex, &e.place))
		switch {
		case strings.EqualFold(h.Name, "Host"):
			q.Host = value
		case value != "":
			q.Header = append(q.Header, Header{h.Name, value})
		}
	}
	return q
}

// pass gives the request what the answer has for the upstream, and takes from it
// what only the answer may say. The answer is nil where another guard was enough.
func (e *external) pass(ex *exchange.Exchange, a *Answer) {
	e.note(ex, a)
	for _, name := range e.Copy {
		var value []byte
		if a != nil {
			value = appendClean(nil, []byte(strings.Join(a.all(name), ", ")))
		}
		setOnly(&ex.Request.Header, name, value)
	}
	if a != nil {
		for _, c := range a.all("Set-Cookie") {
			ex.Aside.Add("Set-Cookie", string(clean(c)))
		}
	}
}

// refuse answers, and reports whether it has.
func (e *external) refuse(ex *exchange.Exchange, v ruling) bool {
	e.note(ex, v.answer)
	switch {
	case v.status == 401 && e.Signin != nil:
		at := e.place
		at.answer = v.answer
		sendTo(ex, 302, e.Signin.appendURL(nil, ex, &at))
	case v.answer == nil && v.status != 500:
		return false
	case v.status == 401:
		ex.Answer(401, "401 Unauthorized: the authentication service refuses\n")
		if v.challenge != "" {
			ex.Response.Header.Set("WWW-Authenticate", v.challenge)
		}
		if v.answer.Status != 401 {
			break
		}
		for _, challenge := range v.answer.all("WWW-Authenticate") {
			ex.Response.Header.Add("WWW-Authenticate", string(clean(challenge)))
		}
	case v.status == 403:
		ex.Answer(403, "403 Forbidden: the authentication service refuses\n")
	default:
		ex.Answer(500, "500 Internal Server Error: the authentication service gives no answer that can be understood\n")
	}
	if v.answer != nil && (e.AlwaysCookie || ex.Response.Status == 302) {
		for _, c := range v.answer.all("Set-Cookie") {
			ex.Response.Header.Add("Set-Cookie", string(clean(c)))
		}
	}
	return true
}

// response adds the cookies of the answer that let the request pass.
func (e *external) response(ex *exchange.Exchange) {
	if !e.AlwaysCookie && !slices.Contains([]int{200, 201, 204, 206, 301, 302, 303, 304, 307, 308}, ex.Response.Status) {
		return
	}
	for _, f := range ex.Aside.Fields() {
		ex.Response.Header.AddParts("Set-Cookie", f.Value)
	}
}

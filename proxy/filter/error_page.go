package filter

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"

	"quayside.io/proxy/exchange"
)

// ErrorPages are what nginx's error_page says in one place.
type ErrorPages struct {
	Pages []ErrorPage
	// Intercepts says that they stand for the answers of backends, too, and not only for
	// what the proxy says itself.
	Intercepts bool
}

// ErrorPage answers in the place of what is wrong.
type ErrorPage struct {
	Statuses []int
	// Status is what it is answered with: KeepStatus, or 0 for that of the page itself.
	Status int
	// To is where clients are sent, by Status if that is one of a redirect, or 302. If it is a
	// path, the route of that answers in its place; nil: the location At of the host does.
	To *Target
	At string
}

// leads reports whether another route answers: that of a path, or a passage of its script.
func (o ErrorPage) leads(named []ScriptPlace) bool {
	return o.To != nil && o.To.IsPath() || o.passage(named) > 0
}

// passage is the number of the one that answers; 0: none does.
func (o *ErrorPage) passage(named []ScriptPlace) int {
	at := slices.IndexFunc(named, func(l ScriptPlace) bool { return l.Path == o.At })
	if at < 0 {
		return 0
	}
	return named[at].Passage()
}

// KeepStatus leaves the status of what is wrong.
const KeepStatus = -1

// Pages answer in the place of what is wrong with the requests of a route. Those of its place
// hide all of its host, as in nginx.
type Pages struct {
	place      Place
	normalize  func(dst, target []byte) (path []byte, ok bool)
	host, own  *pageSet // nil: none
	intercepts bool
	lead       bool // some lead to another route
	steered    bool // so may backends, see Steer
}

// Lead reports whether some of them lead to a path, or backends may; nil: none does.
func (p *Pages) Lead() bool { return p != nil && (p.lead || p.steered) }

// PagesOf returns those that s asks for; nil: none. Backends may lead to paths where the host
// has a location that is there for nobody else.
func PagesOf(s *Settings, tools Tools) *Pages {
	if s == nil {
		return nil
	}
	p := &Pages{place: tools.Place, normalize: tools.Normalize}
	var named []ScriptPlace
	for _, one := range s.Scripts {
		named = append(named, one.Named...)
	}
	for _, one := range s.Scripts {
		set := newPageSet(&one.Errors, named, &tools)
		p.steered = p.steered || slices.ContainsFunc(one.Places, func(l ScriptPlace) bool { return l.Internal && !l.Asked })
		p.intercepts = p.intercepts || one.Errors.Intercepts
		p.lead = p.lead || slices.ContainsFunc(one.Errors.Pages, func(page ErrorPage) bool { return page.leads(named) })
		switch {
		case set == nil:
		case one.OfHost:
			p.host = set
		default:
			p.own = set
		}
	}
	if p.host == nil && p.own == nil && !p.steered {
		return nil
	}
	return p
}

// pageSet is ErrorPages with the locations that they lead to.
type pageSet struct {
	*ErrorPages
	steps    []runner // of each page; nil: it sends clients elsewhere
	fields   []int
	passages []int // 0: it is none
}

func newPageSet(o *ErrorPages, named []ScriptPlace, tools *Tools) *pageSet {
	if len(o.Pages) == 0 {
		return nil
	}
	set := &pageSet{ErrorPages: o}
	for i := range o.Pages {
		var do runner
		fields := 0
		if at := slices.IndexFunc(named, func(l ScriptPlace) bool { return l.Path == o.Pages[i].At }); at >= 0 {
			do, fields = sequence(runners(named[at].Steps, tools)), named[at].Fields
		}
		set.steps, set.fields = append(set.steps, do), append(set.fields, fields)
		set.passages = append(set.passages, o.Pages[i].passage(named))
	}
	return set
}

// of returns the page for a response, which asked says may be a backend's, and what is wrong.
func (p *Pages) of(ex *exchange.Exchange, asked bool) (set *pageSet, i, wrong int) {
	r := &ex.Response
	set = p.own
	if set == nil || ex.Script.Fields[0] == exchange.NoFields { // it is the host that has spoken
		set = p.host
	}
	if set == nil || r.Fault == 0 && (!asked || !p.intercepts || r.Status < 300) {
		return nil, 0, 0
	}
	wrong = cmp.Or(r.Fault, r.Status)
	if i = slices.IndexFunc(set.Pages, func(page ErrorPage) bool { return slices.Contains(page.Statuses, wrong) }); i < 0 {
		return nil, 0, 0
	}
	return set, i, wrong
}

// Replace puts the page of what is wrong in the place of a response. asked says that it may be a
// backend's. Where the page is a path, or the backend leads to one, the request is one for that
// then, and leads is true.
func (p *Pages) Replace(ex *exchange.Exchange, asked bool) (leads bool) {
	r := &ex.Response
	set, i, wrong := p.of(ex, asked)
	if set == nil && asked && p.steered && ex.Script.To != "" {
		if p.steer(ex, ex.Script.To) {
			return true
		}
		set, i, wrong = p.of(ex, false)
	}
	if set == nil {
		return false
	}
	page := &set.Pages[i]
	if page.To != nil && page.To.told && !isAddress(page.To.fill(ex, &p.place)) {
		return false
	}
	passage := set.passages[i]
	if passage > 0 && ex.Request.Body != nil { // which is not there any more
		return false
	}
	ex.Script.Paged, ex.Script.PagedAs = true, page.as(wrong)
	if b := r.Body; b != nil {
		b.Close()
	}
	switch {
	case passage > 0:
		asItCame(ex)
		ex.Script.Moved, ex.Script.Passage = true, passage
		return true
	case page.To != nil && page.To.IsPath():
		return p.follow(ex, page.To.fill(ex, &p.place))
	}
	var challenges []string
	for _, f := range r.Header.Fields() {
		if exchange.EqualFold(f.Name, "WWW-Authenticate") {
			challenges = append(challenges, string(f.Value))
		}
	}
	p.answer(ex, set, i)
	Paged(ex, false)
	for _, challenge := range challenges {
		r.Header.Add("WWW-Authenticate", challenge)
	}
	return false
}

// follow makes a request one for the path to, without what was made of it for the route's own,
// which is kept in the place of the one that came.
func (p *Pages) follow(ex *exchange.Exchange, target []byte) bool {
	path, ok := p.normalize(nil, target)
	if !ok {
		ex.Answer(500, "500 Internal Server Error: an error page is no path\n")
		return false
	}
	asItCame(ex)
	r := &ex.Request
	r.Target, r.Path = target, path
	if string(r.Method) != "HEAD" {
		r.Method = []byte("GET")
	}
	ex.Script.Moved, ex.Script.Fresh, ex.Script.Broke = true, true, false
	return true
}

// asItCame puts the request as it came to the route in the place of what has been made of it,
// without a body, and takes the response back.
func asItCame(ex *exchange.Exchange) {
	r, was := &ex.Request, &ex.Script.Before.Request
	*r, *was = *was, *r
	r.Peer, r.Body, r.Length, r.Upgrade = was.Peer, nil, 0, nil
	ex.Answer(200, "")
	ex.Response.Header.Del("Content-Type")
	ex.Aside = exchange.Header{}
}

// answer has page i of set answer: its location, or by a redirect.
func (p *Pages) answer(ex *exchange.Exchange, set *pageSet, i int) {
	page := &set.Pages[i]
	if page.To != nil {
		code := page.Status
		if !isRedirect(code) {
			code = 302
		}
		sendTo(ex, code, page.To.fill(ex, &p.place))
		return
	}
	ex.Script.Fields = [2]int{exchange.NoFields, set.fields[i]}
	if set.steps[i] != nil {
		set.steps[i](ex)
	}
	ex.Script.Moved = false
}

// as is the status of the page of something wrong; 0: its own.
func (o *ErrorPage) as(wrong int) int {
	switch {
	case o.Status != KeepStatus:
		return o.Status
	case wrong == badCertificate || wrong == noCertificate:
		return 400
	}
	return wrong
}

// Fail says in the proxy's own words what is wrong where a backend that was asked for the page
// of something wrong says so again, for which there would be another page.
func (p *Pages) Fail(ex *exchange.Exchange) {
	if set, _, wrong := p.of(ex, true); set != nil && ex.Response.Fault == 0 {
		if b := ex.Response.Body; b != nil {
			b.Close()
		}
		ex.Answer(wrong, strconv.Itoa(wrong)+"\n")
	}
}

// Paged gives a response that stands in for what was wrong its status. Where the proxy says
// again that something is wrong, or sends the client elsewhere, and no backend that was asked,
// it has the status that it says.
func Paged(ex *exchange.Exchange, asked bool) {
	r, s := &ex.Response, &ex.Script
	if s.Paged && s.PagedAs != 0 && r.Fault == 0 && r.Upgraded == nil && (asked || !isRedirect(r.Status)) {
		r.Status = s.PagedAs
	}
}

// isAddress reports whether text begins as an address does.
func isAddress(text []byte) bool {
	return bytes.HasPrefix(text, []byte("http://")) || bytes.HasPrefix(text, []byte("https://"))
}

// isRedirect reports whether a response with a status sends the client elsewhere.
func isRedirect(status int) bool {
	return slices.Contains([]int{301, 302, 303, 307, 308}, status)
}

package filter

import (
	"cmp"
	"net/netip"
	"slices"

	"go4.org/netipx"

	"quayside.io/proxy/exchange"
)

// ruling is what a guard says.
type ruling struct {
	status    int     // 0 lets the request pass, any other refuses it
	answer    *Answer // of who was asked; nil: nobody was
	challenge string  // WWW-Authenticate of our own
}

// guard says whether a request may pass.
type guard func(ex *exchange.Exchange) ruling

// Guarded reports whether s lets only some requests pass.
func (s *Settings) Guarded() bool {
	return len(s.DeniedPaths) > 0 || len(s.DeniedRequests) > 0 || s.scriptRefuses() || s.Clients.Guards() || s.Firewall != nil || s.guarded()
}

// guarded reports whether any of the guards does that SatisfyAny chooses among.
func (s *Settings) guarded() bool { return s.Access != nil || s.Basic != nil || s.External != nil }

// GuardsOf returns what decides who may pass, for requests that are not for the
// route itself.
func GuardsOf(s *Settings, tools Tools) (c Chain) {
	if s == nil {
		return nil
	}
	c.add(s.DropNames != 0, func() Filter { return dropNames(s.DropNames) })
	if len(s.DeniedPaths) > 0 {
		c = append(c, deniedPaths(s.DeniedPaths))
	}
	if s.Clients.Guards() {
		c = append(c, s.Clients.guard(tools))
	}
	early, late := s.HostRealIP, cmp.Or(s.HostRealIP, s.RealIP)
	if len(s.DeniedRequests) > 0 {
		c = append(c, early.around(deniedRequests(s.DeniedRequests, tools.Place)))
	}
	for _, one := range s.Scripts {
		if one.Refuses {
			c = append(c, early.around(scriptGuard(one, &tools)))
		}
		c.add(one.Except != nil, func() Filter { return late.around(one.Except.filter()) })
	}
	if s.guarded() {
		own := *s
		own.Scripts = nil // whose variables are of other requests
		c = append(c, late.around(Guards(&own, tools)))
	}
	return c
}

func (s *Settings) scriptRefuses() bool {
	return slices.ContainsFunc(s.Scripts, func(one *Script) bool { return one.Refuses || one.Except != nil })
}

// guards are those of a route.
type guards struct {
	all      []guard
	any      bool      // one that lets pass is enough
	external *external // the last of them; nil: none
}

// Guards asks all guards of s, or any of them. Where every one refuses, a client
// that could still name a user is asked to.
func Guards(s *Settings, tools Tools) Filter {
	g := &guards{any: s.SatisfyAny}
	if s.Access != nil {
		g.all = append(g.all, access(s.Access))
	}
	if s.Basic != nil {
		users, challenge := s.Basic.Users, `Basic realm="`+quoted(s.Basic.Realm)+`"`
		g.all = append(g.all, func(ex *exchange.Exchange) ruling { return ruling{status: users.guard(ex), challenge: challenge} })
	}
	f := Filter{Request: g.request}
	if s.External != nil {
		g.external = newExternal(s.External, s.Scripts, tools)
		g.all = append(g.all, g.external.guard)
		f.Response = g.external.response
	}
	return f
}

func (g *guards) request(ex *exchange.Exchange) bool {
	var worst, last ruling
	for _, ask := range g.all {
		last = ask(ex)
		switch {
		case last.status == 0 && g.any:
			return g.pass(ex, last)
		case last.status != 0 && !g.any:
			return g.refuse(ex, last)
		case worst.status != 401 && last.status != 0:
			worst = last
		}
	}
	if worst.status != 0 {
		worst.answer = last.answer // so that a client learns of all ways in
		return g.refuse(ex, worst)
	}
	return g.pass(ex, last)
}

// pass lets ex on; the last guard that was asked said v.
func (g *guards) pass(ex *exchange.Exchange, v ruling) bool {
	if g.external != nil {
		g.external.pass(ex, v.answer)
	}
	return true
}

func (g *guards) refuse(ex *exchange.Exchange, v ruling) bool {
	switch {
	case g.external != nil && g.external.refuse(ex, v):
	case v.status == 401:
		ex.Answer(401, "401 Unauthorized: name a user and a password\n")
		ex.Response.Header.Set("WWW-Authenticate", v.challenge)
	default:
		ex.Answer(403, "403 Forbidden: the client's address may not pass\n")
	}
	return false
}

// quoted returns s as the inside of a quoted string (RFC 9110 section 5.6.4).
func quoted(s string) string {
	var b []byte
	for i := range len(s) {
		if s[i] == '"' || s[i] == '\\' {
			b = append(b, '\\')
		}
		if s[i] >= ' ' && s[i] != 0x7f {
			b = append(b, s[i])
		}
	}
	return string(b)
}

func access(a *Access) guard {
	deny, allow := setOf(a.Deny), setOf(a.Allow)
	open := len(a.Allow) == 0
	return func(ex *exchange.Exchange) ruling {
		client := ex.Request.Client.Addr()
		if deny.Contains(client) || !open && !allow.Contains(client) {
			return ruling{status: 403}
		}
		return ruling{}
	}
}

// setOf makes a set that is searched by halves. Addresses of IPv4 clients are
// never written as IPv6, so the prefixes are not either.
func setOf(prefixes []netip.Prefix) *netipx.IPSet {
	var b netipx.IPSetBuilder
	for _, p := range prefixes {
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		b.AddPrefix(p)
	}
	set, err := b.IPSet()
	if err != nil { // an invalid prefix; the rest stands
		set, _ = (&netipx.IPSetBuilder{}).IPSet()
	}
	return set
}

// dropPassword keeps what a user said to this proxy from the upstream. Where one
// guard of several was enough, nobody looked at it. The log still has the name.
func dropPassword() Filter {
	return Filter{Request: func(ex *exchange.Exchange) bool {
		r := &ex.Request
		r.Asked.Authorization = r.Authorization()
		r.Header.Del("Authorization")
		return true
	}}
}

package filter

import (
	"net/netip"

	"go4.org/netipx"

	"quayside.io/proxy/exchange"
)

// guard says 0 to let a request pass, or the status that refuses it.
type guard func(ex *exchange.Exchange) int

// Guards asks all guards of s, or any of them. Where every one refuses, a client
// that could still name a user is asked to.
func Guards(s *Settings) Filter {
	var all []guard
	if s.Access != nil {
		all = append(all, access(s.Access))
	}
	challenge := ""
	if s.Basic != nil {
		all = append(all, s.Basic.Users.guard)
		challenge = `Basic realm="` + quoted(s.Basic.Realm) + `"`
	}
	enough := s.SatisfyAny
	return Filter{Request: func(ex *exchange.Exchange) bool {
		refusal := 0
		for _, g := range all {
			status := g(ex)
			switch {
			case status == 0 && enough:
				return true
			case status != 0 && !enough:
				refuse(ex, status, challenge)
				return false
			case refusal != 401 && status != 0:
				refusal = status
			}
		}
		if refusal != 0 {
			refuse(ex, refusal, challenge)
		}
		return refusal == 0
	}}
}

func refuse(ex *exchange.Exchange, status int, challenge string) {
	if status == 401 {
		ex.Answer(401, "401 Unauthorized: name a user and a password\n")
		ex.Response.Header.Set("WWW-Authenticate", challenge)
		return
	}
	ex.Answer(403, "403 Forbidden: the client's address may not pass\n")
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
	return func(ex *exchange.Exchange) int {
		client := ex.Request.Client.Addr()
		if deny.Contains(client) || !open && !allow.Contains(client) {
			return 403
		}
		return 0
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

package filter

import (
	"bytes"
	"regexp"

	"quayside.io/proxy/exchange"
)

// CookieFlags are attributes (RFC 6265 section 4.1) that cookies of an upstream get or lose.
type CookieFlags struct {
	Name    string         // of the cookie, in any letter case; empty: see Pattern
	Pattern *regexp.Regexp // is found in the name
	Flags   []CookieFlag
}

// CookieFlag is one of them.
type CookieFlag struct {
	Name   string // "Secure"
	Value  string // "Strict", if it has one
	Absent bool   // it is taken out
}

// cookieFlags changes Set-Cookie as the first entry says that is about the cookie.
func cookieFlags(list []CookieFlags) Filter {
	return Filter{Upstream: func(ex *exchange.Exchange) {
		fields := ex.Response.Header.Fields()
		for i := range fields {
			if !exchange.EqualFold(fields[i].Name, "Set-Cookie") {
				continue
			}
			for k := range list {
				if list[k].about(fields[i].Value) {
					fields[i].Value = list[k].apply(fields[i].Value)
					break
				}
			}
		}
	}}
}

// about reports whether a value of Set-Cookie is one of those.
func (c *CookieFlags) about(value []byte) bool {
	pair, _, _ := bytes.Cut(value, []byte{';'})
	name, _, found := bytes.Cut(pair, []byte{'='})
	name = exchange.TrimSpace(name)
	if !found {
		return false
	}
	if c.Name != "" {
		return exchange.EqualFold(name, c.Name)
	}
	return c.Pattern.Match(name)
}

func (c *CookieFlags) apply(value []byte) []byte {
	parts := bytes.Split(value, []byte{';'})
	for i := range c.Flags {
		parts = c.Flags[i].apply(parts)
	}
	return bytes.Join(parts, []byte{';'})
}

// apply changes the parts of a cookie behind its value.
func (f *CookieFlag) apply(parts [][]byte) [][]byte {
	kept, there := parts[:1], false
	for _, part := range parts[1:] {
		name, _, _ := bytes.Cut(part, []byte{'='})
		switch is := exchange.EqualFold(exchange.TrimSpace(name), f.Name); {
		case !is, !f.Absent && f.Value == "":
			kept, there = append(kept, part), there || is
		case !f.Absent && !there:
			kept, there = append(kept, f.text()), true
		}
	}
	if !f.Absent && !there {
		kept = append(kept, f.text())
	}
	return kept
}

func (f *CookieFlag) text() []byte {
	if f.Value == "" {
		return []byte(" " + f.Name)
	}
	return []byte(" " + f.Name + "=" + f.Value)
}

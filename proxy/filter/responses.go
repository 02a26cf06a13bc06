package filter

import (
	"bytes"

	"quayside.io/proxy/exchange"
)

// Replacement puts To in the place of From. An empty From asks for nothing.
type Replacement struct{ From, To string }

// Cookies changes attributes of the cookies that an upstream sets: the Domain that
// is From, whose leading dot does not count, and the Path that begins with From.
type Cookies struct{ Domain, Path Replacement }

// location replaces the beginning of where the upstream sends the client.
func location(o Replacement) Filter {
	to := clean(o.To)
	return Filter{Upstream: func(ex *exchange.Exchange) {
		fields := ex.Response.Header.Fields()
		for i := range fields {
			f := &fields[i]
			switch {
			case exchange.EqualFold(f.Name, "Location"):
				if rest, ok := bytes.CutPrefix(f.Value, []byte(o.From)); ok {
					f.Value = concat(to, rest)
				}
			case exchange.EqualFold(f.Name, "Refresh"):
				at := behindURL(f.Value)
				if rest, ok := bytes.CutPrefix(f.Value[at:], []byte(o.From)); ok && at > 0 {
					f.Value = concat(f.Value[:at], to, rest)
				}
			}
		}
	}}
}

// behindURL returns where the address in a value of Refresh begins, or 0. Pages write
// "url=" in any letter case.
func behindURL(value []byte) int {
	const key = "url="
	for end := len(key); end <= len(value); end++ {
		if exchange.EqualFold(value[end-len(key):end], key) {
			return end
		}
	}
	return 0
}

func concat(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// cookies changes Set-Cookie. The value of a cookie ends at its first semicolon.
func cookies(o *Cookies) Filter {
	return Filter{Upstream: func(ex *exchange.Exchange) {
		fields := ex.Response.Header.Fields()
		for i := range fields {
			if exchange.EqualFold(fields[i].Name, "Set-Cookie") {
				fields[i].Value = o.rewrite(fields[i].Value)
			}
		}
	}}
}

// rewrite returns one value of Set-Cookie as the client is sent it.
func (o *Cookies) rewrite(value []byte) []byte {
	parts := bytes.Split(value, []byte{';'})
	changed := false
	for i := 1; i < len(parts); i++ {
		name, text, ok := bytes.Cut(parts[i], []byte{'='})
		if !ok {
			continue
		}
		var to []byte
		switch trimmed := exchange.TrimSpace(text); {
		case exchange.EqualFold(exchange.TrimSpace(name), "domain"):
			bare := bytes.TrimPrefix(trimmed, []byte{'.'})
			if o.Domain.From == "" || !exchange.EqualFold(bare, trimDot(o.Domain.From)) {
				continue
			}
			to = clean(o.Domain.To)
		case exchange.EqualFold(exchange.TrimSpace(name), "path"):
			rest, begins := bytes.CutPrefix(trimmed, []byte(o.Path.From))
			if o.Path.From == "" || !begins {
				continue
			}
			to = concat(clean(o.Path.To), rest)
		default:
			continue
		}
		parts[i] = concat(name, []byte{'='}, to)
		changed = true
	}
	if !changed {
		return value
	}
	return bytes.Join(parts, []byte{';'})
}

func trimDot(domain string) string {
	if domain[0] == '.' {
		return domain[1:]
	}
	return domain
}

package balance

import (
	"fmt"
	"slices"
	"strings"

	"quayside.io/proxy/exchange"
)

// HashKey is what upstream-hash-by hashes: text and variables of nginx in a
// row, such as "$request_uri" or "${http_x_user}-$remote_addr".
type HashKey struct{ parts []keyPart }

// keyPart is literal text, or a variable with the name that its prefix took.
type keyPart struct {
	variable variable
	text     string
}

type variable uint8

const (
	literal variable = iota
	requestURI
	requestPath
	requestArgs
	requestHost
	requestMethod
	requestScheme
	clientAddr
	headerField // the prefixed ones carry a name
	cookieValue
	queryValue
	givenKey
)

// Given is the key of requests that have a HashKey of their own.
const Given = "$quayside_hash_key"

// fixedVariable returns the variable of that name, and literal if there is none.
func fixedVariable(name string) variable {
	switch name {
	case "request_uri", "escaped_request_uri":
		return requestURI
	case "uri", "document_uri":
		return requestPath
	case "args", "query_string":
		return requestArgs
	case "host", "http_host", "best_http_host", "server_name":
		return requestHost
	case "request_method":
		return requestMethod
	case "scheme":
		return requestScheme
	case "remote_addr", "binary_remote_addr", "the_real_ip":
		return clientAddr
	case Given[1:]:
		return givenKey
	}
	return literal
}

// ParseHashKey reads a key. It refuses variables that it does not know.
func ParseHashKey(expression string) (HashKey, error) {
	var k HashKey
	for rest := strings.TrimSpace(expression); rest != ""; {
		text, after, found := strings.Cut(rest, "$")
		if text != "" {
			k.parts = append(k.parts, keyPart{literal, text})
		}
		if !found {
			break
		}
		var name string
		if name, rest = cutVariable(after); name == "" {
			return HashKey{}, fmt.Errorf("a $ in %q has no variable name behind it", expression)
		}
		part, ok := partOf(strings.ToLower(name))
		if !ok {
			return HashKey{}, fmt.Errorf("the variable $%s is not known", name)
		}
		k.parts = append(k.parts, part)
	}
	if !slices.ContainsFunc(k.parts, func(p keyPart) bool { return p.variable != literal }) {
		return HashKey{}, fmt.Errorf("%q names no variable, so every request would go to one endpoint", expression)
	}
	return k, nil
}

// cutVariable splits "name rest" and "{name}rest".
func cutVariable(s string) (name, rest string) {
	if inner, found := strings.CutPrefix(s, "{"); found {
		name, rest, found = strings.Cut(inner, "}")
		if !found {
			return "", ""
		}
		return name, rest
	}
	n := 0
	for n < len(s) && (s[n] == '_' || '0' <= s[n] && s[n] <= '9' || 'a' <= s[n]|0x20 && s[n]|0x20 <= 'z') {
		n++
	}
	return s[:n], s[n:]
}

func partOf(name string) (keyPart, bool) {
	if v := fixedVariable(name); v != literal {
		return keyPart{v, ""}, true
	}
	prefix, rest, _ := strings.Cut(name, "_")
	if rest == "" {
		return keyPart{}, false
	}
	switch prefix {
	case "http":
		return keyPart{headerField, exchange.Told(strings.ReplaceAll(rest, "_", "-"))}, true
	case "cookie":
		return keyPart{cookieValue, rest}, true
	case "arg":
		return keyPart{queryValue, rest}, true
	}
	return keyPart{}, false
}

// Hash returns the hash of the key of r. It reports false if every variable is
// empty: such requests have nothing in common, and are spread.
func (k *HashKey) Hash(r *exchange.Request) (uint64, bool) {
	h, some := fnvOffset, false
	for i := range k.parts {
		p := &k.parts[i]
		if p.variable == literal {
			h = fnv(h, p.text)
			continue
		}
		if p.variable == clientAddr {
			some = some || r.Client.IsValid()
			h = hashClient(h, r)
			continue
		}
		value := p.value(r)
		some = some || len(value) > 0
		h = fnv(h, value)
	}
	return mix(h), some
}

func (p *keyPart) value(r *exchange.Request) []byte {
	switch p.variable {
	case requestURI:
		return r.AskedTarget()
	case requestPath:
		return r.Path
	case requestArgs:
		return exchange.Query(r.Target)
	case requestHost:
		return r.AskedHost()
	case requestMethod:
		return r.Method
	case requestScheme:
		if r.TLS {
			return []byte("https")
		}
		return []byte("http")
	case headerField:
		return r.Header.Get(p.text)
	case cookieValue:
		return r.Header.Cookie(p.text)
	case queryValue:
		return exchange.Argument(r.Target, p.text)
	case givenKey:
		return r.HashKey
	}
	return nil
}

func hashClient(h uint64, r *exchange.Request) uint64 {
	a := r.Client.Addr().As16()
	return fnv(h, a[:])
}

const (
	fnvOffset uint64 = 14695981039346656037
	fnvPrime  uint64 = 1099511628211
)

// fnv continues an FNV-1a hash. It and mix must never change: replicas of
// different versions would send one client to different endpoints.
func fnv[S string | []byte](h uint64, s S) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * fnvPrime
	}
	return h
}

// mix is the finalizer of SplitMix64: every bit of the result depends on every
// bit of x, which FNV alone does not give.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

package filter

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"quayside.io/proxy/exchange"
)

// Steer takes the fields out of a backend's response by which it steers nginx, since clients
// are not to see them, and returns what is obeyed here: the path whose location is to answer
// instead, empty for none, and how many bytes of the response may be sent in a second, as
// limit_rate has it, 0 for any number and -1 where nothing is said. X-Accel-Buffering has
// nothing to switch off here, X-Accel-Expires no cache to speak to, and X-Accel-Charset says
// what Content-Type can.
func Steer(ex *exchange.Exchange) (to string, rate int64) {
	rate = -1
	h := &ex.Response.Header
	if !slices.ContainsFunc(h.Fields(), isSteering) {
		return "", rate
	}
	h.Keep(func(f exchange.Field) bool {
		switch {
		case !isSteering(f):
			return true
		case exchange.EqualFold(f.Name, "x-accel-redirect"):
			to = string(f.Value)
		case exchange.EqualFold(f.Name, "x-accel-limit-rate"):
			if n, err := strconv.ParseInt(string(f.Value), 10, 64); err == nil && n >= 0 {
				rate = n
			}
		}
		return false
	})
	return to, rate
}

// isSteering reports whether a field is one of those that nginx keeps to itself. Responses
// have none as a rule, so the length of a name is looked at before its letters.
func isSteering(f exchange.Field) bool {
	switch len(f.Name) {
	case len("X-Accel-Charset"):
		return exchange.EqualFold(f.Name, "x-accel-charset") || exchange.EqualFold(f.Name, "x-accel-expires")
	case len("X-Accel-Redirect"):
		return exchange.EqualFold(f.Name, "x-accel-redirect")
	case len("X-Accel-Buffering"):
		return exchange.EqualFold(f.Name, "x-accel-buffering")
	case len("X-Accel-Limit-Rate"):
		return exchange.EqualFold(f.Name, "x-accel-limit-rate")
	}
	return false
}

// maxSteered is how often a request may be led on, as in nginx.
const maxSteered = 10

// steer makes a request one for the path to which the backend that was asked leads. What it
// says of itself and not of its body stays.
func (p *Pages) steer(ex *exchange.Exchange, to string) (leads bool) {
	if b := ex.Response.Body; b != nil {
		b.Close()
	}
	for _, f := range ex.Response.Header.Fields() {
		if staysBehind(f) {
			ex.Script.Kept = append(ex.Script.Kept, exchange.Field{Name: bytes.Clone(f.Name), Value: bytes.Clone(f.Value)})
		}
	}
	switch ex.Script.Steered++; {
	case ex.Script.Steered > maxSteered:
		ex.Answer(500, "500 Internal Server Error: backends lead in a circle\n")
	case !isSafe(to):
		ex.Answer(404, "404 Not Found: a backend leads to no path\n")
	default:
		return p.follow(ex, []byte(to))
	}
	return false
}

// isSafe reports whether a path may be led to, as nginx sees it: it leads down only.
func isSafe(target string) bool {
	path, _, _ := strings.Cut(target, "?")
	plain := strings.NewReplacer("%2e", ".", "%2E", ".", "%2f", "/", "%2F", "/").Replace(path)
	return strings.HasPrefix(path, "/") && !slices.Contains(strings.Split(plain, "/"), "..")
}

// AddKept gives a response the fields of those of backends that have led to it.
func AddKept(ex *exchange.Exchange) {
	for _, f := range ex.Script.Kept {
		if h := &ex.Response.Header; !exchange.EqualFold(f.Name, "Content-Type") || h.Get("Content-Type") == nil {
			h.AddBorrowed(f.Name, f.Value)
		}
	}
	ex.Script.Kept = nil
}

// staysBehind reports whether a field of a response stays where its backend has another
// location answer.
func staysBehind(f exchange.Field) bool {
	return slices.ContainsFunc([]string{"Set-Cookie", "Content-Disposition", "Cache-Control", "Expires", "Accept-Ranges", "Content-Type"},
		func(name string) bool { return exchange.EqualFold(f.Name, name) })
}

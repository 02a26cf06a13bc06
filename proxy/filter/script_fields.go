package filter

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"quayside.io/proxy/exchange"
)

// FieldChange is what one directive does to a field of responses.
type FieldChange struct {
	// Name is the field; of one that is taken out it may end with an asterisk.
	Name  string
	Value *Template // nil: it is taken out
	// Adds leaves what there is.
	Adds bool
	// Successful says that only responses are changed to which nginx's add_header adds unless
	// it says always.
	Successful bool
	// Statuses and Types are of the responses that are changed, in lower case; none: all.
	Statuses []int
	Types    []string
	// Age, unless nil, is how long caches may keep the response: the fields Expires and
	// Cache-Control are replaced.
	Age *time.Duration
}

// changeFields changes fields as the set of s says that counts for a request. The sets are those
// of all routes of an Ingress: what a route had of its own would be there a thousand times.
func changeFields(s *Script, at Place) func(*exchange.Exchange) {
	kind := kindOf(s.OfHost)
	return func(ex *exchange.Exchange) {
		i := ex.Script.Fields[kind]
		if i < 0 || i >= len(s.Fields) {
			return
		}
		for n := range s.Fields[i] {
			if c := &s.Fields[i][n]; c.isAbout(&ex.Response) {
				c.change(ex, &at)
			}
		}
	}
}

// isAbout reports whether a response is one that c changes.
func (c *FieldChange) isAbout(r *exchange.Response) bool {
	if c.Successful && !succeeds(r.Status) {
		return false
	}
	if len(c.Statuses) > 0 && !slices.Contains(c.Statuses, r.Status) {
		return false
	}
	if len(c.Types) == 0 {
		return true
	}
	return slices.Contains(c.Types, strings.ToLower(string(mediaTypeOf(r))))
}

func (c *FieldChange) change(ex *exchange.Exchange, at *Place) {
	h := &ex.Response.Header
	switch {
	case c.Age != nil:
		setAge(ex, *c.Age)
	case c.Value == nil:
		ex.Response.Unnamed = ex.Response.Unnamed || strings.EqualFold(c.Name, "Server")
		takeOut(h, c.Name)
	case strings.EqualFold(c.Name, strictTransport) && !ex.Request.TLS:
	default:
		value := c.Value.field(ex, at)
		switch {
		case c.Adds && len(value) > 0:
			h.AddParts(c.Name, value)
		case c.Adds:
		case len(value) > 0:
			h.SetBytes(c.Name, value)
		default:
			h.Del(c.Name)
		}
	}
}

// takeOut removes the fields called name, or that begin with what stands before an asterisk.
func takeOut(h *exchange.Header, name string) {
	prefix, many := strings.CutSuffix(name, "*")
	if !many {
		h.Del(name)
		return
	}
	h.Keep(func(f exchange.Field) bool {
		return len(f.Name) < len(prefix) || !exchange.EqualFold(f.Name[:len(prefix)], prefix)
	})
}

// timeFormat is that of fields with a time (RFC 9110 section 5.6.7).
const timeFormat = "Mon, 02 Jan 2006 15:04:05 GMT"

// setAge is nginx's expires: less than nothing is never to be kept.
func setAge(ex *exchange.Exchange, age time.Duration) {
	h := &ex.Response.Header
	expires, control := ex.Request.Received.Add(age), "no-cache"
	if age >= 0 {
		control = "max-age=" + strconv.Itoa(int(age/time.Second))
	}
	h.Set("Expires", expires.UTC().Format(timeFormat))
	h.Set("Cache-Control", control)
}

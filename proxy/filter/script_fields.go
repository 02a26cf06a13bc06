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
	// Kind is what hides it: one of a place hides those of its host of the same kind.
	Kind FieldKind
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

// FieldKind is what directives of one kind hide of each other.
type FieldKind uint8

const (
	FieldStays    FieldKind = iota // of headers-more, of which nothing is hidden
	FieldIsHidden                  // proxy_hide_header
	FieldOfAge                     // expires
	FieldIsAdded                   // add_header
)

// changeFields changes fields as the sets of scripts say that count for a request: of one of a
// host, of one of a place, or of both in that order. The sets are those of all routes of an
// Ingress: what a route had of its own would be there a thousand times.
func changeFields(scripts []*Script, at Place) func(*exchange.Exchange) {
	own := scripts[len(scripts)-1]
	if own.OfHost {
		own = nil
	}
	return func(ex *exchange.Exchange) {
		for _, kind := range [...]FieldKind{FieldIsHidden, FieldStays, FieldOfAge, FieldIsAdded} { // nginx's modules come one behind the other
			for _, s := range scripts {
				if s.OfHost && kind != FieldStays && own.hides(kind, ex.Script.Fields[0]) {
					continue
				}
				set := s.set(ex.Script.Fields[kindOf(s.OfHost)])
				for i := range set {
					if c := &set[i]; c.Kind == kind && c.isAbout(&ex.Response) {
						c.change(ex, &at)
					}
				}
			}
		}
	}
}

// set is one of Fields; nil: there is none of that number.
func (s *Script) set(i int) []FieldChange {
	if i < 0 || i >= len(s.Fields) {
		return nil
	}
	return s.Fields[i]
}

// hides reports whether a set of s has changes of a kind.
func (s *Script) hides(kind FieldKind, set int) bool {
	return s != nil && slices.ContainsFunc(s.set(set), func(c FieldChange) bool { return c.Kind == kind })
}

// acts reports whether c changes anything, and does not only hide others.
func (c FieldChange) acts() bool { return c.Name != "" || c.Age != nil }

// isAbout reports whether a response is one that c changes.
func (c *FieldChange) isAbout(r *exchange.Response) bool {
	if !c.acts() || c.Successful && !succeeds(r.Status) {
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

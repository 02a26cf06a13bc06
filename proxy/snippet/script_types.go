package snippet

import (
	"errors"
	"mime"
	"slices"
	"strings"

	"quayside.io/proxy/filter"
)

// types are what all snippets of an Ingress say about the types of what they answer.
type types struct {
	filled bool // some text has variables
	pages  bool // some response has another type than its own, and not a plain one
}

// errPage keeps what clients send from becoming a page.
var errPage = errors.New("a text with variables is text/plain or application/json, so that nobody's words become a page")

func (t *types) check() error {
	if t.filled && t.pages {
		return errPage
	}
	return nil
}

// see notes what changes of fields do to the type.
func (t *types) see(set []filter.FieldChange) {
	const field = "content-type"
	for i := range set {
		name := strings.ToLower(set[i].Name)
		prefix, many := strings.CutSuffix(name, "*")
		if name != field && (!many || !strings.HasPrefix(field, prefix)) {
			continue
		}
		var kind string
		if set[i].Value != nil {
			kind, _ = set[i].Value.Text()
		}
		t.pages = t.pages || set[i].Adds || !isPlain(kind)
	}
}

// isPlain reports whether a type is one of which no browser makes a page.
func isPlain(kind string) bool {
	of, with, err := mime.ParseMediaType(kind)
	if err != nil || !slices.Contains([]string{"text/plain", "application/json", "application/problem+json"}, of) {
		return false
	}
	charset, told := with["charset"]
	return len(with) == 0 || len(with) == 1 && told && slices.Contains([]string{"utf-8", "us-ascii", "iso-8859-1"}, strings.ToLower(charset))
}

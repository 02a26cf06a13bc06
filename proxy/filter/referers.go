package filter

import (
	"bytes"
	"regexp"
	"strings"

	"quayside.io/proxy/exchange"
)

// Referers are the pages that may lead to something: those of nginx's valid_referers.
type Referers struct {
	// None lets those in who say of no page that it led them, and Blocked those who say something
	// that is no address of http or https.
	None, Blocked bool
	// Own are the pages of the host that is asked for, and of the rule's.
	Own bool
	// Hosts are names in lower case, as Texts and Hosts of Table have them, each with what the path
	// of a page has to begin with; "": all of its pages.
	Hosts    map[string]string
	Wild     []RefererHosts
	Patterns []*regexp.Regexp // of addresses behind their scheme
}

// RefererHosts are pages of hosts whose names begin or end with one, see TableHost.
type RefererHosts struct{ Name, Path string }

// InvalidReferer is the variable that is "1" where no valid page has led a client here.
const InvalidReferer = "invalid_referer"

// SetReferers has the variable InvalidReferer go by v from now on, and returns what it went by;
// nil: it is not known.
func (n *Names) SetReferers(v *Referers) (before *Referers) {
	before, n.referers = n.referers, v
	return before
}

// longestReferer is the longest name of a host that may be valid, in bytes, as in nginx.
const longestReferer = 256

// value is "1" for a request that no valid page has led to. Of several fields each counts, since
// a backend may read any.
func (v *Referers) value(r *exchange.Request, rule string) []byte {
	there := false
	for _, f := range r.Header.Fields() {
		if !exchange.EqualFold(f.Name, "Referer") {
			continue
		}
		if there = true; !v.isValid(f.Value, r, rule) {
			return []byte{'1'}
		}
	}
	if there || v.None {
		return nil
	}
	return []byte{'1'}
}

// isValid reports whether a page may lead here. Nginx takes nothing for an address that is
// shorter than "http://i.ru".
func (v *Referers) isValid(page []byte, r *exchange.Request, rule string) bool {
	scheme := 0
	for _, s := range []string{"http://", "https://"} {
		if len(page) >= len("http://i.ru") && exchange.EqualFold(page[:len(s)], s) {
			scheme = len(s)
		}
	}
	if scheme == 0 {
		return v.Blocked
	}
	page = page[scheme:]
	end := bytes.IndexAny(page, "/:")
	if end < 0 {
		end = len(page)
	}
	if end > longestReferer {
		return false
	}
	host, path := strings.ToLower(string(page[:end])), ""
	if slash := bytes.IndexByte(page[end:], '/'); slash >= 0 {
		path = string(page[end+slash:])
	}
	if within, known := v.pagesOf(host); known {
		return strings.HasPrefix(path, within)
	}
	if v.Own && isOwn(host, r, rule) {
		return true
	}
	for _, p := range v.Patterns {
		if p.Match(page) {
			return true
		}
	}
	return false
}

// pagesOf returns what the paths of a host's pages have to begin with.
func (v *Referers) pagesOf(host string) (path string, known bool) {
	if path, known = v.Hosts[host]; known {
		return path, known
	}
	best := ""
	for _, w := range v.Wild {
		if isWithin(host, w.Name) && (best == "" || isCloser(w.Name, best)) {
			best, path, known = w.Name, w.Path, true
		}
	}
	return path, known
}

// isOwn reports whether host is the one that a client asks for, or that of the rule.
func isOwn(host string, r *exchange.Request, rule string) bool {
	asked, _ := exchange.SplitHost(r.AskedHost())
	domain, isWild := strings.CutPrefix(rule, "*")
	label, isBelow := strings.CutSuffix(host, domain)
	switch {
	case exchange.EqualFold(asked, host):
		return true
	case isWild:
		return isBelow && label != "" && !strings.Contains(label, ".")
	}
	return host == rule
}

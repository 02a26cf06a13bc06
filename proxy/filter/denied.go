package filter

import (
	"bytes"
	"regexp"

	"quayside.io/proxy/exchange"
)

// DeniedPath is what nobody may ask for: the paths that begin with Path, letter by letter,
// or that one alone, or those in which Pattern is found.
type DeniedPath struct {
	Path    string // normalised
	Exact   bool
	Pattern *regexp.Regexp // instead of Path
	Status  int            // one of DeniedStatuses
}

// DeniedStatuses are what a denied request may be answered with, and the text of each.
func DeniedStatuses() map[int]string {
	return map[int]string{
		400: "400 Bad Request\n", 401: "401 Unauthorized\n", 403: "403 Forbidden\n", 404: "404 Not Found\n", 405: "405 Method Not Allowed\n",
		406: "406 Not Acceptable\n", 410: "410 Gone\n", 429: "429 Too Many Requests\n", 451: "451 Unavailable For Legal Reasons\n",
	}
}

// deniedPaths refuses what the first of list says that is about the path: as it is written,
// or as a backend might read it, see AppendDecoded and AppendLoose.
func deniedPaths(list []DeniedPath) Filter {
	texts := DeniedStatuses()
	return Filter{Request: func(ex *exchange.Exchange) bool {
		path := ex.Request.Path
		status := deniedAs(list, path)
		if status == 0 && SpelledOddly(path) {
			if status = deniedAs(list, AppendDecoded(nil, path)); status == 0 {
				status = deniedAs(list, AppendLoose(nil, path))
			}
		}
		if status == 0 {
			return true
		}
		ex.Answer(status, texts[status])
		return false
	}}
}

// deniedAs returns the status of the first of list that is about path, or 0.
func deniedAs(list []DeniedPath, path []byte) int {
	for i := range list {
		if list[i].about(path) {
			return list[i].Status
		}
	}
	return 0
}

func (d *DeniedPath) about(path []byte) bool {
	switch {
	case d.Pattern != nil:
		return d.Pattern.Match(path)
	case d.Exact:
		return string(path) == d.Path
	}
	return len(path) >= len(d.Path) && string(path[:len(d.Path)]) == d.Path
}

// SpelledOddly reports whether a normalised path may be read in another way.
func SpelledOddly(path []byte) bool {
	return bytes.IndexByte(path, '%') >= 0 || bytes.IndexByte(path, ';') >= 0
}

// AppendLoose appends a normalised path as a backend may read it that takes escaped slashes
// and backslashes for slashes, merges slashes, and takes parameters off each element, as
// servlet containers do. That is not longer.
func AppendLoose(dst, path []byte) []byte {
	base := len(dst)
	for i := 0; i < len(path); {
		if n := slashAt(path[i:]); n > 0 {
			if i += n; len(dst) == base || dst[len(dst)-1] != '/' {
				dst = append(dst, '/')
			}
			continue
		}
		if path[i] == ';' {
			for i < len(path) && slashAt(path[i:]) == 0 {
				i++
			}
			continue
		}
		dst = append(dst, path[i])
		i++
	}
	return dst
}

// slashAt returns the length of what a loose reader takes for a slash at the
// beginning of path, or 0.
func slashAt(path []byte) int {
	switch {
	case path[0] == '/':
		return 1
	case len(path) >= 3 && (string(path[:3]) == "%2F" || string(path[:3]) == "%5C"):
		return 3
	}
	return 0
}

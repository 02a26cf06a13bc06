package route

import (
	"net/netip"
	"strings"
)

// invalidHost says what is wrong with the host of a rule, or nothing. The API
// server asks the same, but files pass it by.
func invalidHost(name string) string {
	if name == "" {
		return ""
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return "is an IP address, and a rule needs a name"
	}
	labels := strings.TrimPrefix(name, "*.")
	if len(name) >= maxHost {
		return "is too long"
	}
	for label := range strings.SplitSeq(labels, ".") {
		if !validLabel(label) {
			return "is not a DNS name in lower case, with at most one * as its whole first label"
		}
	}
	return ""
}

func validLabel(label string) bool {
	if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
		return false
	}
	return strings.IndexFunc(label, func(r rune) bool {
		return r != '-' && (r < 'a' || 'z' < r) && (r < '0' || '9' < r)
	}) < 0
}

// matchesWildcard reports whether pattern is a wildcard host one label above name.
func matchesWildcard(name, pattern string) bool {
	rest, wildcard := strings.CutPrefix(pattern, "*")
	label, ok := strings.CutSuffix(name, rest)
	return wildcard && ok && label != "" && label != "*" && !strings.Contains(label, ".")
}

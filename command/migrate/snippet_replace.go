package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"quayside.io/proxy/route"
)

// lineKeys are the options that take lines.
func lineKeys() []string {
	return []string{"request-headers", "response-headers", "proxy-cookie-flags"}
}

// plainKeys are those that may stand in for a snippet: they decide nothing about who passes
// or where a request goes.
func plainKeys() []string { return append(lineKeys(), "enable-access-log") }

// isPlain reports whether what a names does the same as a directive, and may stand beside
// annotations.
func (a advice) isPlain(annotations map[string]string) bool {
	for _, o := range a.options {
		lines := slices.Contains(lineKeys(), o.key)
		if !slices.Contains(plainKeys(), o.key) || !lines && annotations[route.OwnPrefix+o.key] != "" {
			return false
		}
	}
	return !a.nearly && len(a.options) > 0 && len(a.global) == 0
}

// withoutSnippet returns annotations with options in the place of configuration-snippet
// that do the same, where all of it is about such. notes say so; none: it stays.
func withoutSnippet(annotations map[string]string) (out map[string]string, notes []string) {
	const snippet = route.OwnPrefix + "configuration-snippet"
	list, err := parseSnippet(annotations[snippet])
	if err != nil || len(list) == 0 {
		return annotations, nil
	}
	var all advice
	for _, d := range list {
		said := adviceOn(&d, false)
		if !said.needed && (d.block != nil || !said.isPlain(annotations)) {
			return annotations, nil
		}
		all = all.and(advice{options: said.options})
	}
	if len(all.options) == 0 {
		return annotations, nil
	}
	out = maps.Clone(annotations)
	delete(out, snippet)
	var keys []string
	for _, o := range all.options {
		out[route.OwnPrefix+o.key] = strings.TrimLeft(out[route.OwnPrefix+o.key]+"\n"+o.value, "\n")
		keys = append(keys, o.key)
	}
	return out, []string{fmt.Sprintf("configuration-snippet has become %s; fields are set in every request and response, in the place of those that are there", strings.Join(keys, " and "))}
}

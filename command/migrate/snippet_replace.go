package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"quayside.io/proxy/route"
)

// fieldKeys are the options that take fields, a line each, and may say all of a snippet.
func fieldKeys() []string { return []string{"request-headers", "response-headers"} }

// withoutSnippet returns annotations with the options in the place of configuration-snippet
// that do the same, where all of it is about fields: those decide nothing about who passes or
// where a request goes. notes say so; none: it stays.
func withoutSnippet(annotations map[string]string) (out map[string]string, notes []string) {
	const snippet = route.OwnPrefix + "configuration-snippet"
	list, err := parseSnippet(annotations[snippet])
	if err != nil || len(list) == 0 {
		return annotations, nil
	}
	var all advice
	for _, d := range list {
		said := adviceOn(&d, false)
		fields := d.block == nil && len(said.options) > 0 && len(said.global) == 0 && !slices.ContainsFunc(said.options, func(o setting) bool { return !slices.Contains(fieldKeys(), o.key) })
		if !fields && !said.needed {
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
	return out, []string{fmt.Sprintf("configuration-snippet has become %s, which set the fields of every request and response, in the place of those that are there", strings.Join(keys, " and "))}
}

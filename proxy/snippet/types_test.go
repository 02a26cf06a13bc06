package snippet_test

import (
	"strings"
	"testing"

	"quayside.io/proxy/snippet"
)

// TestTypesOfTexts: what clients send becomes no page, whatever of two snippets names its type.
func TestTypesOfTexts(t *testing.T) {
	const text = `return 200 '{"a": "$arg_a"}'; `
	for _, c := range []struct {
		host, place string
		page        bool
	}{
		{"", text + `add_header Content-Type application/json always;`, false},
		{"", text + `more_set_headers "Content-Type: text/plain; charset=UTF-8";`, false},
		{`default_type "application/problem+json"; location = /a { ` + text + `}`, `more_set_headers "Content-Type: text/plain";`, false},
		{`add_header Content-Type text/html;`, `return 200 "<p>";`, false},
		{`add_header Content-Type text/html;`, text, true},
		{`more_clear_headers "Content-*";`, text, true},
		{`location = /a { ` + text + `}`, `proxy_hide_header Content-Type;`, true},
		{`error_page 404 @a; location @a { ` + text + `}`, `more_set_headers "Content-Type: $arg_a";`, true},
	} {
		var known snippet.Known
		_, err := snippet.Script(c.host, true, &known)
		if err == nil {
			_, err = snippet.Script(c.place, false, known.Clone())
		}
		if (err != nil) != c.page || err != nil && !strings.Contains(err.Error(), "become a page") {
			t.Errorf("%s beside %s: %v", c.place, c.host, err)
		}
	}
}

package proxy_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestDrawnTextsSameAsNginx draws texts that sub_filter replaces, of few letters so that they
// overlap, and bodies that have them.
//
// Not drawn are ETag, which stays here as a weak one, and Accept-Ranges, which nginx leaves though
// ranges would be of another body.
func TestDrawnTextsSameAsNginx(t *testing.T) {
	count, parts := drawn(t)
	draw := textDrawer{parts}
	compareWithNginx(t, draw.cases(count, draw.options, draw.request))
}

// textDrawer draws what is replaced.
type textDrawer struct{ snippetDrawer }

func (d textDrawer) word(most int) string {
	word := ""
	for range 1 + d.IntN(most) {
		word += d.of("q", "q", "z", "Z", "-")
	}
	return word
}

func (d textDrawer) options() sameCase {
	text := d.of("sub_filter_types *; ", "sub_filter_types *; ", "sub_filter_types text/plain application/json; ", "sub_filter_types TEXT/PLAIN; ", "") + d.of("", "sub_filter_once off; ", "sub_filter_once off; ", "sub_filter_once on; ") + d.of("", "", "sub_filter_last_modified on; ")
	seen := map[string]bool{}
	for range 1 + d.IntN(4) {
		from := d.word(5)
		if low := strings.ToLower(from); seen[low] {
			continue
		}
		seen[strings.ToLower(from)] = true
		text += fmt.Sprintf("sub_filter %s %s; ", from, d.of(`""`, "<1>", "q", "qz", "[$request_method]", "'a b'"))
	}
	return ofSnippet(text)
}

func (d textDrawer) request() string {
	lines := []string{d.of("GET ", "GET ", "GET ", "HEAD ", "POST ") + d.of("/x", "/x", "/status/404", "/status/500", "/status/206", "/status/204", "/qzq/flush"), "X-Long: " + d.word(40)}
	if d.IntN(2) == 0 {
		fields := append([]string{"X-Said:yes"}, d.some(2, []string{"Content-Type:text/html", "Content-Type:Text/HTML; charset=utf-8", "Content-Type:application/json", "Content-Type:image/png"},
			[]string{"Last-Modified:Wed, 01 Jan 2020 00:00:00 GMT"}, []string{"Cache-Control:no-cache"})...)
		lines = append(lines, "X-Says: "+strings.Join(fields, "|"))
	}
	return strings.Join(lines, "\n")
}

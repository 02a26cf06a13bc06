package route

import (
	"strings"
	"testing"

	"quayside.io/proxy/filter"
)

// TestEarlyVariables: what is decided before snippets do anything may ask for variables with
// tables, unless these wait for a snippet.
func TestEarlyVariables(t *testing.T) {
	w := globalOf(t, map[string]string{
		"http-snippet":     `map $http_x $a { default 0; "b" 1; } map $a $c { 1 "$host"; } map $1 $d { default $a; } map $http_y $e { default "$d"; } map $uri $f { ~(.) "$1"; } map $status $late { 200 1; }`,
		"location-snippet": `set $set "x";`,
	})
	s := w.own
	for line, known := range map[string]bool{
		"$a = 1": true, "$c != x": true, "$f ~ y": true, "$host = z": true, "$A = 1": true,
		"$set = x": false, "$d = x": false, "$e = x": false, "$nothing = x": false, "$geoip2_country_code = DE": false, "$late = 1": false,
	} {
		_, err := s.parseDeniedRequest(line)
		if (err == nil) != known {
			t.Errorf("%s: %v", line, err)
		}
		why := map[bool]string{true: "is about responses", false: "not known"}[strings.HasPrefix(line, "$late")]
		if err != nil && !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want that it %s", line, err, why)
		}
	}
	if _, err := filter.ParseVariable("$a"); err == nil {
		t.Error("variables with tables are known everywhere: this test proves nothing")
	}
}

// TestLoggedVariables: the log may have what the snippets for all hosts set, whatever the order.
func TestLoggedVariables(t *testing.T) {
	data := map[string]string{
		"http-snippet":        `map $http_x $a { default 0; }`,
		"log-format-upstream": "$a $of_location $of_server $remote_addr",
		"location-snippet":    `set $of_location "x";`,
		"server-snippet":      `set $of_server "y";`,
	}
	if w := globalOf(t, data); len(w.problems) > 0 || w.front.Log.Format == nil {
		t.Errorf("problems %v, format %v", w.problems, w.front.Log.Format)
	}
	delete(data, "server-snippet")
	if w := globalOf(t, data); len(w.problems) != 1 || !strings.Contains(w.problems[0].Message, "$of_server is not known") || w.front.Log.Format != nil {
		t.Errorf("problems %v, format %v", w.problems, w.front.Log.Format)
	}
}

package nginxconf_test

import (
	"fmt"
	"strings"
	"testing"

	"quayside.io/proxy/nginxconf"
)

func ExampleParse() {
	list, err := nginxconf.Parse(`# of a guide
location = /x { return 200 "it is \"ok\""; }
proxy_set_header X-A $host`)
	for _, d := range list {
		fmt.Println(d.Line, d.Words, d.Block[0].Words[2])
	}
	fmt.Println(err)
	// Output:
	// 2 [location = /x] it is "ok"
	// line 3: a word does not end
}

// TestBounds: what has no bound in nginx has one here.
func TestBounds(t *testing.T) {
	for text, want := range map[string]string{
		strings.Repeat("#", 64<<10+1):                    "bytes",
		strings.Repeat("a;", 501):                        "more than 500 directives",
		"a" + strings.Repeat(" b", 64) + ";":             "more than 64 words",
		strings.Repeat("a{", 9) + strings.Repeat("}", 9): "deeper than 8",
		"a\x01;": "control character",
	} {
		if _, err := nginxconf.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %q", text, err, want)
		}
	}
	if list, err := nginxconf.Parse(strings.Repeat("a;", 500)); err != nil || len(list) != 500 {
		t.Errorf("%d directives, %v", len(list), err)
	}
}

// FuzzParse: whatever is read has a name, and its text stands in the snippet.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"location;", `a "b" 'c' { d; }`, "x_by_lua_block { if {} }", "a \\; b;", "${x};", "# c\n;"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, _ := nginxconf.Parse(text)
		check(t, text, list)
	})
}

func check(t *testing.T, text string, list []nginxconf.Directive) {
	for i := range list {
		d := &list[i]
		if len(d.Words) == 0 || d.Line < 1 || !strings.Contains(text, d.Text) {
			t.Errorf("%q: %+v", text, d)
		}
		check(t, text, d.Block)
	}
}

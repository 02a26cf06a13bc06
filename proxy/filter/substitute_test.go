package filter

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"quayside.io/proxy/exchange"
)

// TestSubstituteTwin: whatever a body is and however it comes, its texts are replaced as by one
// who reads all of it.
func TestSubstituteTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := rapid.StringMatching(`[abcAB<]{0,60}`).Draw(t, "body")
		once := rapid.Bool().Draw(t, "once")
		var pairs [][2]string
		for range rapid.IntRange(1, 3).Draw(t, "texts") {
			pairs = append(pairs, [2]string{rapid.StringMatching(`[abcA]{1,4}`).Draw(t, "from"), rapid.StringMatching(`[a-z]{0,3}`).Draw(t, "to")})
		}
		o := &Substitution{Always: !once}
		for _, p := range pairs {
			o.Texts = append(o.Texts, SubstitutedText{Literal(p[0]), Literal(p[1])})
		}
		ex := &exchange.Exchange{}
		ex.Response.Header.Add("Content-Type", "text/HTML; charset=utf-8")
		ex.Response.Header.Add("ETag", `"x"`)
		ex.Response.Body, ex.Response.Length = io.NopCloser(iotest.OneByteReader(strings.NewReader(body))), -1
		substitute(o, Place{})(ex)
		got, err := io.ReadAll(ex.Response.Body)
		if want := substitutedAtOnce(body, pairs, once); err != nil || string(got) != want {
			t.Fatalf("%q becomes %q, %v, want %q", body, got, err, want)
		}
		if tag := ex.Response.Header.Get("ETag"); string(tag) != `W/"x"` {
			t.Fatal(string(tag))
		}
	})
}

// substitutedAtOnce is the twin of substituted.
func substitutedAtOnce(body string, pairs [][2]string, once bool) string {
	var out strings.Builder
	used := map[int]bool{}
	for at := 0; at < len(body); {
		found := -1
		for i, p := range pairs {
			if !used[i] && found < 0 && len(body)-at >= len(p[0]) && strings.EqualFold(body[at:at+len(p[0])], p[0]) {
				found = i
			}
		}
		if found < 0 {
			out.WriteByte(body[at])
			at++
			continue
		}
		used[found] = once
		out.WriteString(pairs[found][1])
		at += len(pairs[found][0])
	}
	return out.String()
}

// TestSubstituteOnlyPages: what is not a whole page as it is stays, and so does what clients
// write.
func TestSubstituteOnlyPages(t *testing.T) {
	word, _ := ParseTemplate("<b title='$arg_a'>")
	for _, c := range []struct{ field, value, kind, want string }{
		{"", "", "text/html", "<b title='&lt;script&gt;&#34;&#39;'>"}, {"", "", "text/css", "<b title='&lt;script&gt;&#34;&#39;'>"}, {"", "", "image/png", "head"}, {"", "", "", "head"},
		{"Content-Encoding", "gzip", "text/html", "head"}, {"Content-Range", "bytes 0-3/9", "text/html", "head"},
	} {
		ex := &exchange.Exchange{}
		ex.Request.Target = []byte(`/?a=<script>"'&b`)
		ex.Response.Header.Add("Content-Type", c.kind)
		if c.field != "" {
			ex.Response.Header.Add(c.field, c.value)
		}
		ex.Response.Body, ex.Response.Length = io.NopCloser(strings.NewReader("head")), 4
		substitute(&Substitution{Texts: []SubstitutedText{{Literal("HEAD"), word}}, Types: []string{"text/css"}}, Place{})(ex)
		got, _ := io.ReadAll(ex.Response.Body)
		if string(got) != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

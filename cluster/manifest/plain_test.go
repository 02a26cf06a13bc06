package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

// shop is written as people write manifests.
const shop = `# The shop.
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: shop
  namespace: shops
  labels: {app.kubernetes.io/name: shop, "team": 'edge'}
  annotations:
    nginx.ingress.kubernetes.io/rewrite-target: /$2
    nginx.ingress.kubernetes.io/proxy-body-size: 8m
spec:
  ingressClassName: quayside

  rules:
  - host: "*.example.com"
    http:
      paths:
      # The first of two.
      - path: /foo(/|$)(.*)
        pathType: Prefix
        backend: {service: {name: shop, port: {number: 80}}}
      - {path: /, pathType: Exact, backend: {service: {name: shop, port: {name: http}}}}
  tls:
    - hosts: [a.example.com, b.example.com]
      secretName: tls
`

const plainSlice = `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: shops, name: shop, labels: {kubernetes.io/service-name: shop}}
addressType: IPv4
ports: [{name: "", port: 8080}]
endpoints: [{addresses: ["192.0.2.1"], conditions: {ready: true}}, {addresses: [192.0.2.2]}]
`

func TestWhatIsPlain(t *testing.T) {
	for _, text := range []string{
		strings.Replace(shop, `"team"`, "team", 1),
		plainSlice,
		"a:\n- b\n-   c: d\n    e: [1, 0]\nf: {}\ng: []\n",
		"a: 'it'\nb: 10.0.0.1\nc: 12:30\nd: 5m\n",
	} {
		data, _, ok := plainJSON([]byte(text))
		if !ok {
			t.Errorf("not plain:\n%s", text)
			continue
		}
		agree(t, text, data)
	}
}

func TestWhatIsNotPlain(t *testing.T) {
	for _, text := range []string{
		"a: 010", "a: 1e3", "a: 0x1f", "a: 1_000", "a: 1.5", "a: .5", "a: -1", "a: +1", "a: 2024-01-01", // numbers of a kind
		"a: yes", "a: No", "a: NULL", "a: ~", "a:", "a: True", "on: 1", "y: 1", "a: {b: }", // words and nothing
		"a: 1\na: 2", "a: {b: 1, b: 2}", // twice
		"a: b\n  c", "a: b\n   c: d", "a: 'b\n  c'", "a: {b: c,\n  d: e}", // on several lines
		"a: b # c", "a: b: c", "a: {b: c} # d", "a: {b: c}}", "a: {b: c} d", "a: [b, c", "a: {b: c,}", "a: {b:c}", // what follows
		"a: |\n  b", "a: >-\n  b", "a: &b c", "a: *b", "a: !!str 1", "<<: {a: b}", "? a\n: b", "a: %b", "a: @b", "a: `b`", // signs
		"a: \"b\\n\"", "a: 'it''s'", "a: é", "a: b\tc", "a: b\r\n", "\ta: b", // bytes
		"- a", "a", "", "a: b\n...\n", "%YAML 1.1\n", "a:\n- - b", "a:\n-\n  b: c", "a: - b", "a:\n  b: 1\n c: 2", "- a: 1\n b: 2", "a: b\n- c", // shape
		"metadata: {fieldsV1: {b: 1, a: 2}}",
		"a: " + strings.Repeat("[", 60) + strings.Repeat("]", 60),
	} {
		if data, _, ok := plainJSON([]byte(text)); ok {
			t.Errorf("%q is taken for %s", text, data)
		}
	}
}

// agree fails t unless the YAML library reads the same from text.
func agree(t interface {
	Helper()
	Fatalf(string, ...any)
}, text string, data []byte) {
	t.Helper()
	want, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		t.Fatalf("%q is %s, but in truth %v", text, data, err)
	}
	if d := cmp.Diff(valueOf(want), valueOf(data)); d != "" {
		t.Fatalf("%q: -want +got:\n%s", text, d)
	}
}

func valueOf(data []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return err.Error()
	}
	return v
}

// Whatever is taken for plain means the same to the YAML library, and whatever comes
// of a document by either way is the same.
func FuzzPlain(f *testing.F) {
	for _, text := range []string{shop, plainSlice, "a: {b: [c, 'd'], e: 1}\n", "a: b\n c: d\n", "a: x:y\n", "a: {b: c,d: e}", "a: 1.2.3\n"} {
		f.Add([]byte(text))
	}
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, d := range Split(text) {
			f.Add(d.Text)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if data, _, ok := plainJSON(text); ok {
			agree(t, string(text), data)
		}
		bothWays(t, text)
	})
}

// bothWays reads each document of text as it comes and by the library only.
func bothWays(t interface {
	Helper()
	Fatalf(string, ...any)
}, text []byte) {
	t.Helper()
	for _, d := range Split(text) {
		got := NewDecoder().Decode("f", d)
		slow := reader{file: "f", kinds: kinds()}
		slow.document(place{index: d.Index, line: d.Line}, d.Text)
		if d := cmp.Diff(slow.Result, got); d != "" {
			t.Fatalf("%q: -library +got:\n%s", text, d)
		}
	}
}

// Random texts of what manifests are made of, with mistakes in them, are read alike
// by either way.
func TestPlainIsWhatTheLibraryReads(t *testing.T) {
	words := rapid.SampledFrom(strings.Split(`a|b: |: |, |{|}|[|]|"|'|- |  |    |`+"\n|\n  |\n- |\n  - |\na: |\n    b: |\n# |"+
		`1|0|080|1.5|10.0.0.1|true|yes|null|~|/|/a(.*)|*|x:y|x y|\|#| #|-|--- |<<: |!|&a |é|80|0x1|5m|.|_|$2`, "|"))
	rapid.Check(t, func(t *rapid.T) {
		text := "a: " + strings.Join(rapid.SliceOfN(words, 0, 12).Draw(t, "words"), "")
		if data, _, ok := plainJSON([]byte(text)); ok {
			agree(t, text, data)
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(rapid.SampledFrom([]string{shop, plainSlice}).Draw(t, "text"))
		for range rapid.IntRange(0, 3).Draw(t, "mistakes") {
			at := rapid.IntRange(0, len(text)).Draw(t, "at")
			until := min(len(text), at+rapid.IntRange(0, 3).Draw(t, "length"))
			text = fmt.Appendf(nil, "%s%s%s", text[:at], words.Draw(t, "word"), text[until:])
		}
		if data, _, ok := plainJSON(text); ok {
			agree(t, string(text), data)
		}
		bothWays(t, text)
	})
}

// BenchmarkDecode reads an Ingress of two paths, as plain YAML and by the library.
func BenchmarkDecode(b *testing.B) {
	plain := strings.Replace(shop, `"team"`, "team", 1)
	for name, text := range map[string]string{"plain": plain, "library": strings.Replace(plain, "shop.", "shöp.", 1)} {
		b.Run(name, func(b *testing.B) {
			d := NewDecoder()
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if r := d.Decode("f", Document{1, 1, []byte(text)}); len(r.Objects) != 1 {
					b.Fatal(r.Errors)
				}
			}
		})
	}
}

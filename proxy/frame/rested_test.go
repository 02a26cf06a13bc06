package frame

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2/hpack"
	"pgregory.net/rapid"
)

// An Input that has rested decodes whatever follows like one that has not, however large the
// peer has made its table, as often as it rests.
func TestRestedInputDecodesTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var block bytes.Buffer
		enc := hpack.NewEncoder(&block)
		var got, want []hpack.HeaderField
		field := func(f hpack.HeaderField) { got = append(got, f) }
		const longest = 64 << 10
		in := NewInput(strings.NewReader(""), longest, field)
		text := rapid.OneOf(rapid.StringN(0, 20, -1), rapid.SampledFrom([]string{":path", "cookie", "x-same"}),
			rapid.Map(rapid.IntRange(0, 5000), func(n int) string { return strings.Repeat("y", n) }))
		for range rapid.IntRange(1, 30).Draw(t, "blocks") {
			switch rapid.IntRange(0, 9).Draw(t, "before") {
			case 0:
				enc.SetMaxDynamicTableSize(uint32(rapid.IntRange(0, tableSize).Draw(t, "table")))
			case 1, 2, 3, 4:
				kept := in.Rest()
				in = kept.Input(strings.NewReader(""), longest, field)
			}
			block.Reset()
			got, want = nil, nil
			for range rapid.IntRange(0, 8).Draw(t, "fields") {
				f := hpack.HeaderField{Name: text.Draw(t, "name"), Value: text.Draw(t, "value")}
				want = append(want, f)
				enc.WriteField(f)
			}
			in.Begin(block.Bytes())
			if _, err := in.Decoder.Write(block.Bytes()); err != nil {
				t.Fatal(err)
			}
			if err := in.Decoder.Close(); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("got %q, want %q", got, want)
			}
		}
	})
}

// A rest keeps what a peer may refer to, and nothing else.
func TestRestedInputIsSmall(t *testing.T) {
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	in := NewInput(strings.NewReader(""), 1<<10, func(hpack.HeaderField) {})
	if k := in.Rest(); len(k.fields) > 0 || k.decoder != nil {
		t.Errorf("of one that has read nothing %d bytes are kept", len(k.fields))
	}
	in = NewInput(strings.NewReader(""), 1<<10, func(hpack.HeaderField) {})
	size := 0
	for range 100 {
		f := hpack.HeaderField{Name: "x-name", Value: strings.Repeat("y", 50+size%7)}
		enc.WriteField(f)
		size += len(f.Name) + len(f.Value)
	}
	in.Decoder.Write(block.Bytes())
	in.Decoder.Close()
	if k := in.Rest(); len(k.fields) == 0 || len(k.fields) > tableSize {
		t.Errorf("of a table of %d bytes %d are kept", tableSize, len(k.fields))
	}
}

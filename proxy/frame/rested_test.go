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
			if err := in.Decode(block.Bytes(), true); err != nil {
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

// A block may begin with two changes of the table's size, the smallest and the last, though
// fields stay in the table (RFC 7541 section 4.2); behind a field there may be none.
func TestTwoChangesOfTheTablesSize(t *testing.T) {
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	kept := hpack.HeaderField{Name: "a", Value: "b"}
	var got []hpack.HeaderField
	in := NewInput(strings.NewReader(""), 1<<10, func(f hpack.HeaderField) { got = append(got, f) })
	for range 2 {
		enc.WriteField(kept)
		if err := in.Decode(block.Bytes(), true); err != nil {
			t.Fatal(err)
		}
		if err := in.Decoder.Close(); err != nil {
			t.Fatal(err)
		}
		block.Reset()
		enc.SetMaxDynamicTableSize(1000)
		enc.SetMaxDynamicTableSize(2000)
	}
	if !slices.Equal(got, []hpack.HeaderField{kept, kept}) {
		t.Errorf("got %q", got)
	}
	field := appendText(appendText([]byte{0}, []byte("a")), []byte("b"))
	if err := in.Decode(append(field, tableEmpty|1), true); err == nil {
		t.Error("a change behind a field is taken")
	}
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

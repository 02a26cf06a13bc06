package coding

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"pgregory.net/rapid"
)

// pieces is a body that comes piece by piece.
type pieces struct {
	list   []string
	end    error
	closed int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.list) == 0 {
		return 0, p.end
	}
	n := copy(b, p.list[0])
	if p.list[0] = p.list[0][n:]; p.list[0] == "" {
		p.list = p.list[1:]
	}
	return n, nil
}

func (p *pieces) Close() error { p.closed++; return nil }

// memory is a body that is whole.
type memory struct {
	io.Reader
	text string
}

func (m *memory) Close() error          { return nil }
func (m *memory) Whole() ([]byte, bool) { return []byte(m.text), true }

func decoder(t testing.TB, c Coding, r io.Reader) io.Reader {
	if c == Brotli {
		return brotli.NewReader(r)
	}
	z, err := gzip.NewReader(r)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// TestEncode: what is decoded is what was encoded, however it came and is read, and
// with encoders that served others before.
func TestEncode(t *testing.T) {
	e := &Encoders{}
	rapid.Check(t, func(r *rapid.T) {
		list := rapid.SliceOfN(rapid.StringN(1, 50_000, 60_000), 0, 5).Draw(r, "pieces")
		c := rapid.SampledFrom([]Coding{Gzip, Brotli}).Draw(r, "coding")
		from := &pieces{list: slices.Clone(list), end: io.EOF}
		b := e.Encode(c, rapid.IntRange(0, 6).Draw(r, "level"), from)
		var got bytes.Buffer
		var err error
		if rapid.Bool().Draw(r, "at once") {
			_, err = b.(io.WriterTo).WriteTo(&got)
		} else {
			_, err = io.Copy(&got, iotest.HalfReader(struct{ io.Reader }{b}))
		}
		if err != nil {
			r.Fatal(err)
		}
		text, err := io.ReadAll(decoder(t, c, &got))
		if err != nil || string(text) != strings.Join(list, "") {
			r.Fatalf("%d bytes of %d: %v", len(text), len(strings.Join(list, "")), err)
		}
		if b.Close(); b.Close() != nil || from.closed != 1 {
			r.Fatalf("closed %d times", from.closed)
		}
		if _, err := b.Read(make([]byte, 1)); err == nil {
			r.Fatal("a closed body is read")
		}
	})
}

// TestEncodeIsLive: what came can be decoded before more comes.
func TestEncodeIsLive(t *testing.T) {
	for _, c := range []Coding{Gzip, Brotli} {
		r, w := io.Pipe()
		b := new(Encoders).Encode(c, 1, r)
		wire, sent := io.Pipe()
		go func() { _, err := b.(io.WriterTo).WriteTo(sent); sent.CloseWithError(err) }()
		var text io.Reader
		for i := range 3 {
			event := fmt.Sprintf("data: %d\n\n", i)
			go io.WriteString(w, event)
			if text == nil {
				text = decoder(t, c, wire)
			}
			got := make([]byte, len(event))
			if _, err := io.ReadFull(text, got); err != nil || string(got) != event {
				t.Errorf("%v: %q, %v", c, got, err)
			}
		}
		w.Close()
		if rest, err := io.ReadAll(text); err != nil || len(rest) > 0 {
			t.Errorf("%v: the end: %q, %v", c, rest, err)
		}
		b.Close()
	}
}

func TestEncodeBroken(t *testing.T) {
	cut := errors.New("cut")
	for _, c := range []Coding{Gzip, Brotli} {
		b := new(Encoders).Encode(c, 1, &pieces{list: []string{"half of it"}, end: cut})
		got, err := io.ReadAll(b)
		if !errors.Is(err, cut) {
			t.Errorf("%v: %v", c, err)
		}
		if _, err := io.ReadAll(decoder(t, c, bytes.NewReader(got))); err == nil {
			t.Errorf("%v: what broke off ends well", c)
		}
	}
}

// TestEncodeWhole: what is in memory stays there.
func TestEncodeWhole(t *testing.T) {
	text := strings.Repeat("whole ", 1000)
	for _, c := range []Coding{Gzip, Brotli} {
		b := new(Encoders).Encode(c, 4, &memory{strings.NewReader(text), text})
		so, all := b.(whole).Whole()
		if got, err := io.ReadAll(decoder(t, c, bytes.NewReader(so))); !all || err != nil || string(got) != text || len(so) > len(text)/10 {
			t.Errorf("%v: whole %v, %d bytes, %v", c, all, len(so), err)
		}
		if got, err := io.ReadAll(b); err != nil || !bytes.Equal(got, so) {
			t.Errorf("%v: reading yields something else: %v", c, err)
		}
		b.Close()
	}
	b := new(Encoders).Encode(Gzip, 1, &pieces{list: []string{"a"}, end: io.EOF})
	if so, all := b.(whole).Whole(); all || len(so) > 0 {
		t.Errorf("a stream is whole: %q", so)
	}
}

// TestEncodeAtOnce: slow readers do not take all memory.
func TestEncodeAtOnce(t *testing.T) {
	e := &Encoders{}
	var held []io.Closer
	for range atOnce {
		held = append(held, e.Encode(Brotli, 0, &pieces{end: io.EOF}))
	}
	from := &pieces{list: []string{"a"}, end: io.EOF}
	if e.Encode(Brotli, 0, from) != nil || from.closed > 0 {
		t.Error("one more is encoded")
	}
	held[0].Close()
	held[0].Close()
	if e.Encode(Brotli, 0, from) == nil || e.Encode(Brotli, 0, from) != nil {
		t.Error("what was closed made room for other than one")
	}
}

func BenchmarkEncode(b *testing.B) {
	text := strings.Repeat(`{"name":"some value","at":1234567890},`, 1700) // 64 KiB
	for _, k := range []struct {
		c     Coding
		level int
	}{{Gzip, 1}, {Gzip, 5}, {Brotli, 4}} {
		b.Run(fmt.Sprint(k.c, k.level), func(b *testing.B) {
			e := &Encoders{}
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			var sent int64
			for b.Loop() {
				body := e.Encode(k.c, k.level, io.NopCloser(strings.NewReader(text)))
				sent, _ = io.Copy(io.Discard, body)
				body.Close()
			}
			b.ReportMetric(float64(sent), "sent")
		})
	}
}

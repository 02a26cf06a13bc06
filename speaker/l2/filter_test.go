package l2

import (
	"encoding/binary"
	"testing"

	"golang.org/x/net/bpf"
	"pgregory.net/rapid"
)

// The filter's spans cover every address, stay few, and cover little else when
// the addresses lie together.
func TestSpansCover(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set := map[[4]byte]struct{}{}
		for _, w := range rapid.SliceOf(rapid.Uint32()).Draw(t, "words") {
			set[[4]byte(binary.BigEndian.AppendUint32(nil, w))] = struct{}{}
		}
		spans := spansOf(set)
		if len(spans) > maxSpans {
			t.Fatalf("%d spans", len(spans))
		}
		for a := range set {
			covered := false
			for _, s := range spans {
				w := lastWord(a)
				covered = covered || s.lo <= w && w <= s.hi
			}
			if !covered {
				t.Fatalf("%v is not covered by %v", a, spans)
			}
		}
		checkFilter(t, spans, rapid.Uint32().Draw(t, "probe"))
		for a := range set {
			checkFilter(t, spans, lastWord(a))
		}
	})
}

// checkFilter runs the program that the kernel would run.
func checkFilter(t *rapid.T, spans []span, word uint32) {
	vm, err := bpf.NewVM(append(inSpans(0, spans), bpf.RetConstant{Val: 0}))
	if err != nil {
		t.Fatal(err)
	}
	n, err := vm.Run(binary.BigEndian.AppendUint32(nil, word))
	if err != nil {
		t.Fatal(err)
	}
	want := false
	for _, s := range spans {
		want = want || s.lo <= word && word <= s.hi
	}
	if (n > 0) != want {
		t.Fatalf("%#x passes: %v, in %v: %v", word, n > 0, spans, want)
	}
}

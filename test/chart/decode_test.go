package chart

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

// TestWhatTheServerTakesDecodes puts odd values into every field of every
// fixture: what the server then takes, our types read. A client cannot read a
// list with one object that does not decode, so whoever may write one object
// of a kind could hide all of them from everybody.
func TestWhatTheServerTakesDecodes(t *testing.T) {
	srv := newServer(t)
	taken := 0
	for _, folder := range []string{"ours", "metallb"} {
		for _, f := range fixtures(t, folder) {
			object := runtime.DeepCopyJSON(f.object)
			everyLeaf(object, "", func(path string, set func(any)) {
				for _, odd := range oddValues() {
					set(odd)
					if len(srv.judge(t.Context(), f.kind, object)) > 0 {
						continue
					}
					taken++
					text, err := json.Marshal(object)
					if err != nil {
						t.Fatal(err)
					}
					if err := json.Unmarshal(text, newObject(f.kind)); err != nil {
						t.Errorf("%s: the server takes %#v for %s%s, and nobody can read it: %v", f.file, odd, f.kind, path, err)
					}
				}
			})
		}
	}
	if taken < 100 {
		t.Errorf("the server took %d odd values: this test looks in the wrong place", taken)
	}
}

// oddValues are at the borders of what a server takes: times and durations as
// their formats and patterns allow them, and numbers of every size.
func oddValues() []any {
	return []any{
		"", "x", "2026-11-20T20:00:00Z", "2026-11-20t20:00:00z", "2026-11-20T20:00:00_5Z", "2026-11-20T20:00:00+99:99", "2026-11-20T20:00:00.5Z",
		"2026-02-30T20:00:00Z", "2026-11-20T23:59:60Z", "1s", "2562047h", "2562048h", "9999999999999999999999999999999h", "0.00000000000000000000000000001s",
		int64(0), int64(-1), int64(256), int64(math.MaxInt32) + 1, int64(math.MaxUint32), int64(math.MaxUint32) + 1, int64(math.MaxInt64), float64(1 << 40), float64(1 << 53), 1e19, 0.5,
		true,
	}
}

// everyLeaf calls visit for every value in o that holds no others, with a way to
// change it, and puts it back afterwards.
func everyLeaf(o any, path string, visit func(path string, set func(any))) {
	at := func(path string, v any, set func(any)) {
		switch v.(type) {
		case map[string]any, []any:
			everyLeaf(v, path, visit)
		default:
			visit(path, set)
			set(v)
		}
	}
	switch o := o.(type) {
	case map[string]any:
		for k, v := range o {
			if path != "" || k == "spec" || k == "status" {
				at(path+"."+k, v, func(odd any) { o[k] = odd })
			}
		}
	case []any:
		for i, v := range o {
			at(fmt.Sprintf("%s[%d]", path, i), v, func(odd any) { o[i] = odd })
		}
	}
}

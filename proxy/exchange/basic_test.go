package exchange

import "testing"

func TestAppendUser(t *testing.T) {
	for field, want := range map[string]string{
		"Basic YW5uOnB3":       "ann",
		"bAsIc   YW5uOnB3 ":    "ann",
		"Basic YW5u":           "", // no password
		"Basic ***":            "",
		"Basic":                "",
		"Bearer YW5uOnB3":      "",
		"":                     "",
		"Basic YW5uOnB3OmI6Yw": "", // of a length that is none
	} {
		var r Request
		r.Header.Add("Authorization", field)
		if got := string(r.AppendUser([]byte("-"))); got != "-"+want {
			t.Errorf("%q: %q, want -%s", field, got, want)
		}
		if n := testing.AllocsPerRun(10, func() { var b [64]byte; r.AppendUser(b[:0]) }); n != 0 {
			t.Errorf("%q: %v allocations", field, n)
		}
	}
}

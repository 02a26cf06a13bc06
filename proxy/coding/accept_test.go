package coding

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestAccepted(t *testing.T) {
	both := SetOf(Gzip, Brotli)
	for _, c := range []struct {
		accept  string
		offered Set
		want    Coding
	}{
		{"", both, Identity},
		{"gzip", both, Gzip},
		{"gzip, deflate, br, zstd", both, Brotli},
		{"gzip, deflate, br", SetOf(Gzip), Gzip},
		{"br", SetOf(Gzip), Identity},
		{"br;q=0.5, gzip", both, Gzip},
		{"br;q=0, gzip;q=0.1", both, Gzip},
		{"*", both, Brotli},
		{"*;q=0", both, Identity},
		{"br;q=0, *", both, Gzip},
		{"identity, gzip;q=0.5", both, Identity},
		{"identity;q=0.5, gzip;q=0.5", both, Gzip},
		{" GZip ; q=1.000 ", SetOf(Gzip), Gzip}, // spaces before the weight are no token
		{"x-gzip", both, Gzip},
		{"gzip;q=2", both, Identity},
		{"gzip;q=1.001", both, Identity},
		{"gzip;q=0.0000001", both, Identity},
		{"gzip;q=", both, Identity},
		{"gzipped, brr", both, Identity},
		{",,;,", both, Identity},
		{"gzip", 0, Identity},
	} {
		if got := Accepted([]byte(c.accept), c.offered); got != c.want {
			t.Errorf("%q of %b: %v, want %v", c.accept, c.offered, got, c.want)
		}
	}
	field := []byte("gzip, deflate, br;q=0.9")
	if n := testing.AllocsPerRun(100, func() { Accepted(field, both) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// stupid reads well formed fields.
func stupid(accept string, offered Set) Coding {
	weights := map[string]float64{}
	for _, part := range strings.Split(accept, ",") {
		name, q, ok := strings.Cut(strings.ReplaceAll(part, " ", ""), ";q=")
		weights[name] = 1
		if ok {
			weights[name], _ = strconv.ParseFloat(q, 64)
		}
	}
	of := func(c Coding) float64 {
		if q, ok := weights[c.String()]; ok {
			return q
		}
		return weights["*"]
	}
	list := []Coding{Brotli, Gzip}
	list = slices.DeleteFunc(list, func(c Coding) bool { return !offered.Has(c) || of(c) == 0 || of(c) < weights["identity"] })
	if len(list) == 0 {
		return Identity
	}
	return slices.MaxFunc(list, func(a, b Coding) int { return int(1000*of(a)) - int(1000*of(b)) })
}

func TestAcceptedAgainstItsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.Permutation([]string{"gzip", "br", "identity", "*", "zstd"}).Draw(t, "names")[:rapid.IntRange(1, 5).Draw(t, "many")]
		for i := range names {
			names[i] += rapid.SampledFrom([]string{"", ";q=0", ";q=1", ";q=0.5", "; q=0.25", ";q=0.125", ";q=1.0"}).Draw(t, "weight")
		}
		accept := strings.Join(names, rapid.SampledFrom([]string{",", ", ", " , "}).Draw(t, "comma"))
		offered := Set(rapid.SampledFrom([]Set{SetOf(Gzip), SetOf(Brotli), SetOf(Gzip, Brotli)}).Draw(t, "offered"))
		if got, want := Accepted([]byte(accept), offered), stupid(accept, offered); got != want {
			t.Fatalf("%q of %b: %v, its twin says %v", accept, offered, got, want)
		}
	})
}

func FuzzAccepted(f *testing.F) {
	for _, s := range []string{"gzip;q=0.5, br", "*;q=0.001", "gzip;;q=1", ";q=0,", "br;q=1.000000000000000000000"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, accept []byte) {
		if c := Accepted(accept, SetOf(Gzip)); c == Brotli {
			t.Errorf("%q: brotli was not offered", accept)
		}
	})
}

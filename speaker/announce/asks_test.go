package announce

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"quayside.io/cluster/snapshot"
)

// A plan asks about no endpoints but those that Asks names, and who looks at what
// changes knows when it names others.
func TestAPlanAsksOnlyWhatAsksNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := genWorld(t)
		c := snapshot.Of(append(w.objects, router(t)...)...)
		for range rapid.IntRange(1, 6).Draw(t, "changes") {
			was := c
			c = change(t, c, len(w.nodes))
			named := Asks(c)
			if others := !slices.Equal(Asks(was), named); others != AsksForOthers(was, c) {
				t.Fatalf("others are named: %v", others)
			}
			for service := range Compile(c, "n0", w.view, epoch0(), Options{ExternalIPs: true}).reading.places.All() {
				if !slices.Contains(named, service) {
					t.Fatalf("it asks about %v, and not of them is told %v", named, service)
				}
			}
		}
	})
}

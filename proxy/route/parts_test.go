package route

import (
	"fmt"
	"testing"
)

// The parts of a unit are found by their hosts, be they few or many.
func TestPartsByHost(t *testing.T) {
	u := &unit{}
	for i := range 3 * fewParts {
		host := fmt.Sprintf("host-%d.test", i)
		if u.find(host) != nil {
			t.Fatalf("%s is there before it was made", host)
		}
		made := u.part(host)
		for _, c := range u.parts {
			if u.find(c.host) != c || u.part(c.host) != c {
				t.Fatalf("with %d parts, %s is not found", len(u.parts), c.host)
			}
		}
		if made.host != host || len(u.parts) != i+1 {
			t.Fatalf("the part of %s is that of %s, one of %d", host, made.host, len(u.parts))
		}
	}
}

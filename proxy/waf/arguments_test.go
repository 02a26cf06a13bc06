package waf

import (
	"fmt"
	"strings"
	"testing"
)

// TestNoArgumentHidesBehindOthers: of more arguments in a query than are kept, which
// ones the rules see is left to chance.
func TestNoArgumentHidesBehindOthers(t *testing.T) {
	d := running(t)
	inForce(t, d, rule("evil"))
	names := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "a%d&", i)
		}
		return b.String()
	}
	for range 20 {
		if v := judge(d, rule("evil"), ask("/?"+names(3000)+"q=evil"), ""); v.Status != 400 && v.Status != 403 {
			t.Fatalf("the argument behind 3,000 others: %+v", v)
		}
	}
	if v := judge(d, rule("evil"), ask("/?"+names(900)+"q=good"), ""); v.Status != 0 {
		t.Errorf("900 arguments: %+v", v)
	}
}

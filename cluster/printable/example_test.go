package printable_test

import (
	"fmt"

	"quayside.io/cluster/printable"
)

// A tenant's text cannot colour the screen of whoever looks, nor begin a new line on it.
func ExampleLine() {
	fmt.Println(printable.Line("web\x1b[31m of the\nshop"))
	// Output:
	// web\x1b[31m of the\nshop
}

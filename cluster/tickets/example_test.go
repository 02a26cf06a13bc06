package tickets_test

import (
	"fmt"
	"time"

	"quayside.io/cluster/tickets"
)

// The key that seals changes every Period, and the one before still opens.
func ExampleRotate() {
	made := byte(0)
	random := func() tickets.Key { made++; return tickets.Key{made} }
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

	secret, next := tickets.Rotate(nil, now, random)
	keys, _ := tickets.Parse(secret)
	fmt.Println("seals:", keys[0][0], "next change in", next.Sub(now))

	secret, _ = tickets.Rotate(secret, next, random)
	keys, _ = tickets.Parse(secret)
	fmt.Println("seals:", keys[0][0], "also opens:", keys[1][0], keys[2][0])
	// Output:
	// seals: 1 next change in 8h0m0s
	// seals: 2 also opens: 4 1
}

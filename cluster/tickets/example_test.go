package tickets_test

import (
	"fmt"
	"time"

	"quayside.io/cluster/tickets"
)

// The key that seals tickets changes every Period, and the one before still opens. That of
// cookies stays.
func ExampleRotate() {
	made := byte(0)
	random := func() tickets.Key { made++; return tickets.Key{made} }
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

	secret, next := tickets.Rotate(nil, now, random)
	keys, _ := tickets.Parse(secret)
	cookies, _ := tickets.CookieKey(secret)
	fmt.Println("seals:", keys[0][0], "cookies:", cookies[0], "next change in", next.Sub(now))

	secret, _ = tickets.Rotate(secret, next, random)
	keys, _ = tickets.Parse(secret)
	cookies, _ = tickets.CookieKey(secret)
	fmt.Println("seals:", keys[0][0], "also opens:", keys[1][0], keys[2][0], "cookies:", cookies[0])
	// Output:
	// seals: 1 cookies: 4 next change in 8h0m0s
	// seals: 2 also opens: 5 1 cookies: 4
}

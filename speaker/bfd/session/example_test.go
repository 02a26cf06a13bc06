package session_test

import (
	"fmt"
	"time"

	"quayside.io/speaker/bfd/session"
)

// Two ends meet: each is given what the other hands out, and no time passes but
// what Next asks for.
func Example() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	fast := session.Config{Transmit: 50 * time.Millisecond, Receive: 50 * time.Millisecond, Multiplier: 3}
	here, there := session.New(1, fast), session.New(2, fast)
	for here.Status().State != session.Up || there.Status().State != session.Up {
		for _, way := range [][2]*session.Session{{here, there}, {there, here}} {
			if p, due := way[0].Tick(now, 0); due {
				way[1].Receive(&p, now)
			}
		}
		next, _ := here.Next()
		if now.Before(next) {
			now = next
		}
	}
	fmt.Println(here.Status().State, there.Status().State)
	now = now.Add(5 * time.Second) // in which there says nothing
	here.Tick(now, 0)
	fmt.Println(here.Status().State, here.Status().Diag)
	// Output:
	// Up Up
	// Down nothing was heard for the detection time
}

package refresh_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"quayside.io/proxy/refresh"
)

// An answer is asked for again when its time to live has passed. Whoever wants something
// new signals the loop.
func Example() {
	var mu sync.Mutex
	due := map[string]time.Time{} // by name
	answers := make(chan string)
	loop := refresh.Loop[string]{
		AtOnce: 4,
		Due: func(now time.Time) (names []string, pause time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			pause = time.Hour
			for name, at := range due {
				if wait := at.Sub(now); wait > 0 {
					pause = min(pause, wait)
					continue
				}
				names, due[name] = append(names, name), now.Add(time.Hour)
			}
			return names, pause
		},
		Ask: func(_ context.Context, name string) { answers <- "the answer for " + name },
	}
	ctx, stop := context.WithCancel(context.Background())
	wake, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() { ended <- loop.Run(ctx, wake) }()

	mu.Lock()
	due["shop.example.com"] = time.Now()
	mu.Unlock()
	refresh.Signal(wake)
	fmt.Println(<-answers)
	stop()
	<-ended
	// Output:
	// the answer for shop.example.com
}

package refresh

import (
	"context"
	"sync"
	"time"
)

// Loop asks for things of type T.
type Loop[T any] struct {
	// AtOnce is how many questions are on their way at a time.
	AtOnce int
	// Due takes what is due, so that it is not taken again before it was asked for,
	// and returns how long it is until the next.
	Due func(now time.Time) ([]T, time.Duration)
	// Ask asks for one thing, and learns what is answered.
	Ask func(ctx context.Context, what T)
}

// Run asks until ctx ends; whenever wake is sent to, something may be due sooner. It
// returns nil.
func (l Loop[T]) Run(ctx context.Context, wake <-chan struct{}) error {
	var running sync.WaitGroup
	defer running.Wait()
	room := make(chan struct{}, l.AtOnce)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-wake:
		case <-timer.C:
		}
		due, next := l.Due(time.Now())
		for _, what := range due {
			running.Go(func() {
				select {
				case room <- struct{}{}:
				case <-ctx.Done():
					return
				}
				defer func() { <-room }()
				l.Ask(ctx, what)
			})
		}
		timer.Reset(next)
	}
}

// Signal wakes who waits on c, now or the next time.
func Signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

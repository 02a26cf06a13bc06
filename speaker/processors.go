package speaker

import (
	"context"
	"runtime"
	"sync"
	"syscall"
	"time"
)

const (
	// workPause is between two looks at whether there is work, and restPause while there is
	// none: a timer wakes two threads twice.
	workPause = 2 * time.Second
	restPause = 10 * time.Second
	// restShare is up to what share of a processor a speaker takes that rests.
	restShare = 0.1
)

// processors lets this process run on one processor while it rests, and on all of them as
// soon as there is work. At rest each goroutine that hands something to another makes Go
// wake a thread for another processor, which finds the work done: more than a third of all
// wakes. But one processor is too few while a plan is compiled: packets of gossip would
// wait for that.
type processors struct {
	all int // 0: leave them as they are

	mu     sync.Mutex
	worked bool // since the last look
	one    bool
}

// work is called before there is work to do.
func (p *processors) work() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.worked = true
	p.use(false)
}

// Run looks now and then whether there is work, until ctx ends.
func (p *processors) Run(ctx context.Context) error {
	if p.all > 1 {
		pause := time.NewTimer(workPause)
		defer pause.Stop()
		defer p.work()
		for spent, looked := timeSpent(), time.Now(); ctx.Err() == nil; {
			select {
			case <-ctx.Done():
			case now := <-pause.C:
				was, before := spent, looked
				spent, looked = timeSpent(), now
				pause.Reset(p.look(float64(spent-was) <= restShare*float64(looked.Sub(before))))
			}
		}
	}
	<-ctx.Done()
	return nil
}

// look takes in whether the process has rested, and returns when to look again.
func (p *processors) look(rested bool) (pause time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.use(rested && !p.worked)
	p.worked = false
	if p.one {
		return restPause
	}
	return workPause
}

// use sets how many processors the process may use. The caller holds mu.
func (p *processors) use(one bool) {
	if p.all < 2 || p.one == one {
		return
	}
	p.one = one
	if one {
		runtime.GOMAXPROCS(1)
	} else {
		runtime.GOMAXPROCS(p.all)
	}
}

// timeSpent is the processor time of this process.
func timeSpent() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it cannot fail for oneself
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

package cluster

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"quayside.io/cluster/snapshot"
)

const (
	// atOnce is how many requests a fleet that starts may send in one second without being
	// spread: a small one does not wait at all. A process that starts alone may send it, too.
	atOnce = 400
	// After its turn has come, a process of a large fleet sends its first requests this far
	// apart at most: bursts of a dozen make the rate of a fleet uneven.
	mostSpacing = 500 * time.Millisecond
	// Who has sent none for so long sends a few at once: some sixty where it starts
	// alone.
	free = 150 * time.Millisecond
	// looks is how often a process looks for itself among those that are not ready, before
	// it believes that nobody notices.
	looks = 3
)

// start keeps a fleet that starts at once, as after a power failure or a crash of all, from
// asking for everything at once. It has nothing to tell it from one process that starts
// alone, which is not to wait, but the status of the DaemonSet or Deployment that runs both:
// how many there are to be, and how many are ready. So the first request of a process is for
// that. It then waits for its turn in the time that all who start need at fleetRate, and
// sends what it wants to know one request after the other: in the order of turns half of the
// fleet knows everything after half of that time, where with one request of each after the
// other nobody would before the end.
//
// The first of these looks cannot be held back, since it is what tells how many there are;
// except where a container was started again: its former life has left the number in a file.
type start struct {
	api   *API
	begun chan struct{} // closed when requests may be sent

	mu       sync.Mutex
	starting int       // processes of the fleet that start, this one included
	until    time.Time // the others have started; zero: not yet known
	sent     int       // first requests
	due      time.Time // the next request, if they were as far apart as they should be
}

func newStart(a *API) *start {
	s := &start{api: a, begun: make(chan struct{}), starting: 1}
	if a.opts.Workload == (Workload{}) && a.opts.LastKnown.File == "" {
		close(s.begun)
	}
	return s
}

// run waits for the turn of this process.
func (s *start) run(ctx context.Context) {
	if IsClosed(s.begun) {
		return
	}
	defer close(s.begun)
	if former := s.api.memory.formerFleet(); former > 0 {
		s.api.hint.Store(int64(former))
		if !sleep(ctx, spread(former)) {
			return
		}
	}
	starting := 1
	if s.api.opts.Workload != (Workload{}) {
		starting = s.look(ctx)
	}
	turn := spread(starting * s.requests())
	if turn > 0 { // until then the others look, too
		turn += time.Duration(starting) * time.Second / fleetRate * 3 / 2
	}
	if turn > time.Second {
		s.api.log.Info("many start at the same time; waiting for our turn at the API server", "processes", starting, "wait", turn)
	}
	s.mu.Lock()
	s.starting, s.until = starting, time.Now().Add(2*window(starting*s.requests())+10*time.Second)
	s.mu.Unlock()
	sleep(ctx, turn)
}

// requests is about how many a process sends at its start.
func (s *start) requests() int { return len(s.api.opts.Kinds) + 1 }

// window is the time in which so many requests of a fleet are sent.
func window(requests int) time.Duration {
	if requests <= atOnce {
		return 0
	}
	return time.Duration(requests) * time.Second / fleetRate
}

// spread is a moment in that time.
func spread(requests int) time.Duration {
	return time.Duration(rand.Float64() * float64(window(requests)))
}

// sleep reports whether ctx has not ended within d.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// look returns how many processes of this one's workload start, this one included. If it is
// not known, that is one. Where all are said to be ready, this process has not been noticed
// yet, nor perhaps the others.
func (s *start) look(ctx context.Context) int {
	for try := range looks {
		wanted, ready, ok := s.census(ctx)
		if !ok || ctx.Err() != nil {
			break
		}
		s.api.hint.Store(int64(wanted))
		if ready < wanted {
			return wanted - ready
		}
		if try < looks-1 && !sleep(ctx, around(time.Duration(wanted)*time.Second/fleetRate)) {
			break
		}
	}
	return 1
}

// census asks until the server answers, and reports whether it tells. The requests of the
// others wait behind it, so that one of each process asks while the server is away.
func (s *start) census(ctx context.Context) (wanted, ready int, ok bool) {
	a := s.api
	for failed := false; ; failed = true {
		t, err := a.gate.enter(ctx, firstOfAll, failed)
		if err != nil {
			return 0, 0, false
		}
		wanted, ready, err = a.workload(ctx)
		a.gate.leave(ctx, t, err)
		if isAnswer(err) || ctx.Err() != nil {
			if failed {
				s.tell(ctx, nil)
			}
			return wanted, ready, err == nil
		}
		s.tell(ctx, err)
		// The others still ask for the first time.
		if !failed && !sleep(ctx, a.gate.distance()) {
			return 0, 0, false
		}
	}
}

// tell says of all kinds that they cannot be read, as nothing can, or that they can.
func (s *start) tell(ctx context.Context, err error) {
	for _, kind := range s.api.opts.Kinds {
		if !slices.Contains(s.api.opts.Referenced, kind) {
			s.api.contact.heard(ctx, groupOf(scope{kind: kind}), err)
		}
	}
}

// pass waits until a first request may be sent, of a list or watch that has never been
// answered. The error is that of ctx.
func (s *start) pass(ctx context.Context) error {
	select {
	case <-s.begun:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if !s.api.opts.Lenient && !sleep(ctx, s.next(time.Now())) {
		return context.Cause(ctx)
	}
	return nil
}

// next takes a place in the line of first requests and returns how long it is away. A few
// do not wait. What this process is known to want at its start has been taken into account
// when it waited for its turn, and comes close together; all else, such as the certificates
// of a thousand namespaces, at the share of this process in fleetRate.
func (s *start) next(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.starting > 1 && now.After(s.until) {
		s.starting = 1
	}
	share := time.Duration(s.starting) * time.Second / fleetRate
	apart := share
	if s.sent++; s.sent <= s.requests() {
		apart = min(share/10, mostSpacing)
	}
	if free := now.Add(-free); s.due.Before(free) {
		s.due = free
	}
	wait := s.due.Sub(now)
	s.due = s.due.Add(apart)
	return wait
}

// firstOfAll comes before every kind at the gate.
const firstOfAll = snapshot.Kind(-1)

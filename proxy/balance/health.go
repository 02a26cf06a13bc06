package balance

import (
	"math"
	"sync/atomic"
	"time"
)

// The readiness probes of Kubernetes decide whether a pod is well. Health only
// bridges the seconds until they notice that it is gone, so the limits are tight
// and an ejected endpoint is soon asked again.
const (
	ejectAfter   = 3           // failed connections in a row
	sickAfter    = 5           // requests in a row that a connection was lost with
	ejectFor     = time.Second // doubled by every failed probe
	maxDoublings = 5           // up to 32 s
	inTurn       = 0           // Health.until of an endpoint that is not ejected
)

// Health is a circuit breaker for one endpoint: in turn, ejected until a time,
// then half open, where one request may probe it. Its zero value is in turn. All
// methods may be called at once by many goroutines; none takes a lock.
type Health struct {
	failures atomic.Int32 // in a row
	probes   atomic.Int32 // admitted since the endpoint was in turn
	until    atomic.Int64 // unix nanoseconds, or inTurn

	broken atomic.Int32 // connections lost without an answer, in a row
	sick   atomic.Bool  // ejected for those, though it takes connections

	unwell  atomic.Bool // by its health checks, which alone put it back in turn
	checked int         // results in a row: successes, or below 0 failures

	load
}

// Admit reports whether a request may be sent to the endpoint now. Of an
// endpoint whose ejection has passed, it admits one request as a probe; another
// only when the probe has been silent for as long as the first ejection lasts.
func (h *Health) Admit(now time.Time) bool {
	until := h.until.Load()
	if until == inTurn {
		return true
	}
	if h.unwell.Load() {
		return false
	}
	at := now.UnixNano()
	if at < until || !h.until.CompareAndSwap(until, at+int64(ejectFor)) {
		return false
	}
	h.probes.Add(1)
	return true
}

// admits reports whether Admit would.
func (h *Health) admits(now time.Time) bool {
	until := h.until.Load()
	return until == inTurn || !h.unwell.Load() && now.UnixNano() >= until
}

// Ejected reports whether the endpoint is out of turn, without asking for
// admission.
func (h *Health) Ejected() bool { return h.until.Load() != inTurn }

// doubted reports whether the endpoint is out of turn for another reason than that it
// takes no connections. Where many are, the fault is hardly theirs.
func (h *Health) doubted() bool { return h.sick.Load() || h.unwell.Load() }

// Checked takes the result of a health check and reports whether it puts the endpoint
// out of turn, or back. One goroutine at a time may call it.
func (h *Health) Checked(well bool, c HealthCheck) (changed bool) {
	if well {
		h.checked = max(h.checked, 0) + 1
	} else {
		h.checked = min(h.checked, 0) - 1
	}
	was := h.unwell.Load()
	switch {
	case !was && h.checked <= -c.Failures:
		h.unwell.Store(true)
		fallthrough
	case was && !well: // again: an answer that was on its way may have put it back
		h.until.Store(math.MaxInt64)
	case was && h.checked >= c.Successes:
		h.unwell.Store(false)
		h.failures.Store(0)
		h.broken.Store(0)
		h.restore()
	}
	return was != h.unwell.Load()
}

// Succeeded puts the endpoint back in turn.
func (h *Health) Succeeded() {
	// Loads first: on the path of every request a store would make the cores
	// fight for the line.
	if h.failures.Load() != 0 {
		h.failures.Store(0)
	}
	if h.until.Load() != inTurn && !h.doubted() {
		h.restore()
	}
}

func (h *Health) restore() {
	h.probes.Store(0)
	h.sick.Store(false)
	h.until.Store(inTurn)
}

// Answered records a response, whatever it says, and puts the endpoint back in
// turn.
func (h *Health) Answered() {
	if h.broken.Load() != 0 {
		h.broken.Store(0)
	}
	if h.until.Load() != inTurn && !h.unwell.Load() {
		h.failures.Store(0)
		h.restore()
	}
}

// Observe takes the time that a response took; only PeakEWMA asks for it.
func (h *Health) Observe(now time.Time, took time.Duration) { h.observe(now, took) }

// Broke records a request that got no response, or none that could be read,
// over a connection that had been made. It reports whether the endpoint is
// ejected now: that takes more such failures than connections refused, and where
// more than half are ejected it is not believed.
func (h *Health) Broke(now time.Time) bool {
	if h.broken.Add(1) < sickAfter {
		return false
	}
	h.sick.Store(true)
	h.eject(now)
	return true
}

func (h *Health) eject(now time.Time) {
	pause := ejectFor << min(h.probes.Load(), maxDoublings)
	h.until.Store(now.Add(pause).UnixNano())
}

// Failed records a connection that could not be made and reports whether the
// endpoint is ejected now. The pause grows with probes, not with failures: a
// hundred connections that fail at once are one misfortune.
func (h *Health) Failed(now time.Time) bool {
	if h.failures.Add(1) < ejectAfter {
		return false
	}
	h.sick.Store(false)
	h.eject(now)
	return true
}

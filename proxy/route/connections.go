package route

import (
	"fmt"
	"strconv"
	"time"
)

// Connections are how connections are kept: those of clients, and those to
// endpoints. Zeros are the defaults of who keeps them. It is immutable.
type Connections struct {
	// Requests is how many a client may send over one connection, and Streams how many
	// of them at once where that speaks HTTP/2.
	Requests, Streams int
	// Idle is how many connections to one endpoint are kept for the next request,
	// negative: none; each for IdleFor, until it is as old as Life or has served Uses.
	Idle, Uses    int
	IdleFor, Life time.Duration
}

// connections returns what w says of them, nil for nothing.
func (w *wide) connections() *Connections {
	if w.kept == (Connections{}) {
		return nil
	}
	return &w.kept
}

// The most that options may ask for.
const (
	maxStreams  = 1000
	maxKept     = 100_000
	maxRequests = 1 << 30
)

// parseKept reads a number from least to most.
func parseKept(least, most int, of func(*Connections) *int) func(w *wide, value string) error {
	return func(w *wide, value string) error {
		n, err := strconv.Atoi(value)
		if err != nil || n < least || n > most {
			return fmt.Errorf("%q is no number from %d to %d", value, least, most)
		}
		*of(&w.kept) = n
		return nil
	}
}

// parseIdle reads upstream-keepalive-connections, of which 0 is none.
func parseIdle(w *wide, value string) error {
	err := parseKept(0, maxKept, func(c *Connections) *int { return &c.Idle })(w, value)
	if err == nil && w.kept.Idle == 0 {
		w.kept.Idle = -1
	}
	return err
}

// parseKeptFor reads a time of nginx: a number with a unit, of seconds without.
func parseKeptFor(of func(*Connections) *time.Duration) func(w *wide, value string) error {
	return func(w *wide, value string) error {
		d, err := time.ParseDuration(value)
		if n, bare := strconv.Atoi(value); bare == nil {
			d, err = time.Duration(n)*time.Second, nil
		}
		if err != nil || d < time.Second || d > maxSeconds*time.Second {
			return fmt.Errorf("%q is no time from 1s to 24h", value)
		}
		*of(&w.kept) = d
		return nil
	}
}

package exchange

import "sync/atomic"

// MostAhead is how many bytes of responses one client may have fetched for it beyond the
// least that each takes. It is enough for a few that come as fast as they can.
const MostAhead = 2 << 20

// Ahead counts what is fetched so for one client with many requests at once: were each
// as generous as one alone, a client that reads nothing would hold all of it in memory.
// The zero value is ready. Its methods may be called by many goroutines.
type Ahead struct{ taken atomic.Int64 }

// Take reports whether n bytes more may be fetched; then they are given back by Give.
func (a *Ahead) Take(n int64) bool {
	if a.taken.Add(n) <= MostAhead {
		return true
	}
	a.taken.Add(-n)
	return false
}

// Give takes back what was granted.
func (a *Ahead) Give(n int64) { a.taken.Add(-n) }

// Fetcher is what a Peer may implement whose connection carries many requests at once.
type Fetcher interface {
	// Ahead is of the connection.
	Ahead() *Ahead
}

//go:build race

package filter

// The race detector makes sync.Pool drop things at random, patterns' among them, so nothing
// can be said about allocations.
const racing = true

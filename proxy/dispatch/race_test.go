//go:build race

package dispatch_test

// The race detector makes sync.Pool drop things at random, so nothing can be
// said about allocations.
const racing = true

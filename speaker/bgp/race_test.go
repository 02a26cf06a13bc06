//go:build race

package bgp

// The race detector makes everything several times slower, so nothing can be
// said about speed.
const racing = true

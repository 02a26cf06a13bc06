//go:build race

package l2

// The race detector makes everything several times slower, so nothing can be
// said about speed.
const racing = true

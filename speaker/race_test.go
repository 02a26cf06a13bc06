//go:build race

package speaker

// The race detector makes everything several times slower, so nothing can be
// said about speed.
const racing = true

//go:build !race

package bench

const racing = false

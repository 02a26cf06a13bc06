//go:build !race

package filter

const racing = false

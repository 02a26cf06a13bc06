//go:build !race

package l2

const racing = false

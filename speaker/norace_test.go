//go:build !race

package speaker

const racing = false

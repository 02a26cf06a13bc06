//go:build !race

package dispatch_test

const racing = false

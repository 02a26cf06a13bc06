//go:build !race

package serve_test

const racing = false

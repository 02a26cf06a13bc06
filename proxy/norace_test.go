//go:build !race

package proxy_test

const racing = false

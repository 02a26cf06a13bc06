//go:build race

package proxy_test

// racing says that the race detector watches, which takes memory of its own.
const racing = true

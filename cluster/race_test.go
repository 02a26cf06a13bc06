//go:build race

package cluster

const racing = true

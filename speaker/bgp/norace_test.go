//go:build !race

package bgp

const racing = false

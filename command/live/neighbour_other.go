//go:build !linux

package live

import (
	"net/netip"

	"quayside.io/command/explain"
)

// neighbour knows no table of this system.
func neighbour(netip.Addr) (says string, state explain.State, onLink bool) { return "", "", false }

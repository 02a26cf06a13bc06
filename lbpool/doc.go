// Package lbpool allocates addresses: it parses ranges, assigns them to pools, records the
// holders of addresses, decides whether two holders may share one, and finds the next free
// one.
//
// Any package may import it; it does not depend on Kubernetes. It guarantees that an
// address belongs to at most one pool (Divide gives overlaps to the first), and that
// Allocations.Next never proposes an address that has a holder.
//
// No operation is linear in the size of a pool. A pool is a few ranges, and the allocated
// addresses of a range are a sparse bitmap with summaries (bits.go), so finding a free one
// costs the same in an empty /28 and in a /64 with a million holders. Nor is a check of a
// shared address linear in its holders (holders.go), or a search for one linear in the
// shared addresses (join.go): thousands may share one, and thousands may wait to.
//
// Read pool.go first, then allocations.go.
package lbpool

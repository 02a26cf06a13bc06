// Package lbpool knows which addresses exist and who holds them: ranges as
// operators write them, pools, the rules under which two holders share one
// address, and the choice of the next free one.
//
// Any package may import it; it knows nothing of Kubernetes. It makes sure that
// an address belongs to at most one pool (Divide gives what overlaps to the
// first), and that Allocations.Next never proposes an address that somebody holds.
//
// Nothing here walks a pool. A pool is a few ranges however large it is, and
// the addresses taken in a range are a sparse bitmap with summaries (bits.go),
// so that finding a free one costs the same in an empty /28 and in a /64 with
// a million holders. Nor is a question about a shared address put to everyone
// who holds it (holders.go), nor to every address that is shared (join.go):
// thousands may hold one together, and thousands wait to join them.
//
// Read pool.go first, then allocations.go.
package lbpool

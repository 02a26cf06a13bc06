// Package controller is the component that allocates: one leader in the cluster gives every
// Service of type LoadBalancer its address and writes the statuses of Services, Ingresses and
// pools.
//
// Package command makes one, with a Source and a Writer of cluster. The component compiles assign
// whenever something that it reads has changed, writes the differences, and reports Problems as
// Events when they appear and, as long as they last, again before these are forgotten. It
// compiles announce and route as well, only for their Problems, since speakers and proxies are
// many. A controller that does not lead keeps its snapshot current and
// does nothing.
//
// What holds: only the leader writes, one plan at a time; a failed write is retried with growing
// pauses and never delays the others; the address of a write whose outcome is unknown stays
// taken.
//
// Read controller.go first, then lead.go.
package controller

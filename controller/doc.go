// Package controller is the component that decides: one leader in the cluster
// gives every Service of type LoadBalancer its address and writes the statuses
// of Services, Ingresses and pools.
//
// Command makes one, with a Source and a Writer of cluster. The component
// compiles assign whenever something that it reads has changed, writes what
// differs, and reports Problems as Events when they appear and, as long as they
// last, before those are forgotten. It compiles announce and route as well, for
// their Problems only, since speakers and proxies are many. Those who do not lead
// keep their snapshot warm and do nothing.
//
// What holds: only the leader writes, one plan at a time; a failed write is
// tried again with growing pauses and never stops the others; the address of a
// write whose outcome is unknown stays taken.
//
// Read controller.go first, then lead.go.
package controller

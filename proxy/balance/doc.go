// Package balance chooses the endpoint that answers a request.
//
// Compile turns a Service and its EndpointSlices into a Set, the immutable list
// of endpoints behind one port, with the Policy by which requests are spread
// over it. Picker takes endpoints in turn, by load, by a hash or by a Session.
// Health is what this proxy has seen of one endpoint: it leaves the turn after
// failed connections, and is asked back with one request at a time, or by its health
// checks, and then comes back by them.
//
// The package is pure: it opens nothing, reads no clock and draws no random
// number; those are arguments. What holds:
//   - A Set says why it is empty, in a sentence for the owner of the Service.
//   - Picking allocates nothing and takes no lock, whatever the policy.
//   - Hashes and sessions lead to the same endpoint on every replica, and an
//     endpoint that comes or goes moves its own share of them only.
//   - A client cannot choose its endpoint: session cookies are sealed with the
//     Service's UID. Where there is none, as in files, its name must do.
//
// Read set.go first, then policy.go, plan.go and pick.go.
package balance

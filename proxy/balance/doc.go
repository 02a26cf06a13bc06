// Package balance chooses the endpoint for a request.
//
// Compile turns a Service and its EndpointSlices into a Set, the immutable list of endpoints of
// one port, with the Policy by which requests are spread over it. A Picker takes endpoints by
// round robin, load, hash or Session. Health is the proxy's own view of one endpoint: after
// failed connections it is taken out, and is tried again with one request at a time, or by its
// health checks if it has them.
//
// The package is pure: it opens nothing, reads no clock and draws no random number; those are
// arguments. What holds:
//   - An empty Set has the reason, as a sentence for the owner of the Service.
//   - Picking allocates nothing and takes no lock, with any policy.
//   - Hashes and sessions lead to the same endpoint on every replica, and a new or removed
//     endpoint moves only its own share of them.
//   - Nobody makes a session cookie but who has the CookieKey, which is an argument: what is
//     known of a Service, such as its UID, lets no client choose its endpoint, or aim others
//     at one.
//
// Read set.go first, then policy.go, plan.go and pick.go.
package balance

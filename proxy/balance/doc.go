// Package balance chooses the endpoint that answers a request.
//
// Compile turns a Service and its EndpointSlices into a Set, the immutable list
// of endpoints behind one port. Picker walks a Set in turn. Health is what this
// proxy has seen of one endpoint: it leaves the turn after failed connections
// and is asked back with one request at a time.
//
// The package is pure: it opens nothing, reads no clock and draws no random
// number. The hands pass in the time and the offset at which a Picker starts.
// It keeps two promises: a Set says why it is empty, in a sentence that can be
// shown to whoever owns the Service, and picking allocates nothing and takes no
// lock.
//
// Read set.go first.
package balance

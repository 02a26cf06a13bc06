// Package proxy is the component of the HTTP data plane: it watches the cluster
// and tells its drivers where to listen (serve), what to answer (dispatch), where to send it
// (upstream) and where to log it (linewriter).
//
// Only main imports it. Two loops share one piece of state. Routes: a change of an
// Ingress, class, Service or Secret compiles the next route.Table, gives every
// backend that it names its endpoints, and only then puts the table in force.
// Endpoints: a change of an EndpointSlice or Service compiles the sets of the
// Services that it touches, past the routes, and costs nothing for the others.
//
// It keeps these promises. The proxy is not ready before the first full table
// is live. A request never meets a table that names an unknown backend. When
// its context ends, requests under way finish within the grace period.
//
// While the speaker of its node hands addresses over, every response ends its
// connection (leaving.go).
//
// Read proxy.go first, then endpoints.go.
package proxy

// Package proxy is the component of the HTTP data plane. It watches the cluster and tells
// its drivers where to listen (serve, h2), how to answer (dispatch), where requests go
// (upstream, asker, names), and what to keep or send on the side: spool (request bodies in
// files), linewriter (access log), exporter (spans), stapler (OCSP), waf (firewall).
//
// Only command imports it. Its loops share the table in force:
//   - routes: a change of an Ingress, class, Service or Secret compiles the next
//     route.Table, gives every backend in it its endpoints, and only then puts it in force;
//   - endpoints: a change of an EndpointSlice or Service compiles the sets of the Services
//     concerned, without the routes, and costs nothing for others;
//   - leaving: while the speaker of this node hands its addresses over, every response
//     closes its connection (leaving.go);
//   - the server: accepts connections, and drains when the context ends.
//
// It keeps these promises. The proxy is not ready before the first full table is in force.
// A request never meets a table that names an unknown backend. When its context ends,
// requests in progress finish within the grace period.
//
// A new driver is a package of floor 3 beside these, with its line in floors() of
// test/house, a field of Proxy, and its Run in Proxy.Run.
//
// Read proxy.go first, then endpoints.go.
package proxy

// Package upstream forwards an exchange to a pod and reads its response.
//
// An Engine has one Backend per Service port. The component declares a Backend's endpoints
// with SetEndpoints, which never blocks; dispatch calls Forward with an exchange, which then
// has the response. The package has an HTTP/1.1 client of its own, over TCP or TLS, because
// fasthttp's retries and queues in ways that a proxy must not. For backends that want it, it
// speaks HTTP/2 over connections of package streams, which the requests to an endpoint share.
// Endpoints are health-checked (check.go) where the policy of their backend says so.
//
// What holds:
//   - A request is repeated only where that has no visible effect: connecting failed, nothing
//     was sent, the pod closed the connection before any of it arrived, or, without a byte of
//     response, the method is idempotent and there is no body. A route may ask for more
//     (exchange.Forwarding); a streamed body is sent to at most one endpoint that may have
//     read some of it.
//   - A response that the upstream cut short never looks complete, and what it had sent
//     unasked before a request is not the answer to that (leftover.go).
//   - An endpoint that is removed finishes its requests and gets no new ones; its idle
//     connections close, and requests that wait for a connection to it choose another.
//   - Over a limit, or without an endpoint, the answer is 503 at once: nothing queues. Of
//     connections there are so many to all endpoints together (places.go).
//   - A request over HTTP/1.1 allocates nothing once connections and buffers are warm.
//
// Read backend.go first, then transaction.go (one request), conn.go (one connection), head.go
// (the strict parser) and body.go; for HTTP/2 shared.go and stream.go.
package upstream

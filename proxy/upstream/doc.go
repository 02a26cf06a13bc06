// Package upstream carries an exchange to a pod and its answer back.
//
// An Engine holds one Backend per Service port. The component declares a Backend's
// endpoints with SetEndpoints, from any goroutine and without waiting; a front
// end calls Forward with an exchange and finds the response in it afterwards.
// The package speaks HTTP/1.1, over TCP or TLS, with a client of its own, because
// the one of fasthttp retries and queues in ways that a proxy must not. Where the
// backend says so it speaks HTTP/2, over connections of package streams that the
// requests to an endpoint share. Endpoints are asked whether they are well (check.go)
// where the policy of their backend wants that.
//
// What holds:
//   - Requests are repeated only where that cannot be seen: if connecting
//     failed, nothing was sent, or the pod closed the connection before any of it
//     arrived, and, if the connection died without a byte of
//     response, where the method is idempotent and there is no body. A route
//     may ask for more (exchange.Forwarding); a body that is streamed is sent to
//     one endpoint at most that may have looked at it.
//   - A response that the upstream cut short never looks complete.
//   - An endpoint that leaves finishes what it has been asked; nothing new is
//     asked, its idle connections close, and who connects there turns elsewhere.
//   - Over a limit, and without an endpoint, the answer is 503 at once: nothing
//     queues.
//   - A request over HTTP/1.1 costs no allocation once connections and buffers are
//     warm.
//
// Read backend.go first, then transaction.go (one request), conn.go (one
// connection), head.go (the strict parser) and body.go; for HTTP/2 shared.go and
// stream.go.
package upstream

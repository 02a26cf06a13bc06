// Package serve is the front end for HTTP/1.1 and TLS.
//
// The component declares the addresses with SetListeners, which never blocks, and passes an
// exchange.Handler. Run serves until its context ends and then drains. fasthttp parses
// requests and writes responses; a request is copied into an exchange, and the handler sees
// nothing else.
//
// What holds:
//   - A request that two parsers could read differently (lengths, codings, hosts, targets,
//     field names) is refused with 400.
//   - A response that was cut short closes the client's connection.
//   - A connection is reused only if the last request was read to its end.
//   - A change of one listener affects no connection.
//   - A request without a body over a connection without TLS costs one read, which says
//     whether more has come, and one write, see direct_linux.go. What is not as simple is
//     served by fasthttp's own loop.
//   - A connection that waits for a request has no goroutine and gives back all of this
//     package's memory but 2 kB, see rest.go, and without TLS all but a hundred bytes beside
//     its descriptor, see bare_linux.go. TLS keeps buffers of its own, 5 to 20 kB;
//     proxy/idle_test.go bounds what a whole proxy has for each kind.
//
// Read server.go first, then request_context.go (one request) and client.go (one
// connection).
package serve

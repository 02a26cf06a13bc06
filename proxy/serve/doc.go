// Package serve is the front end that clients speak HTTP/1.1 and TLS to.
//
// The component declares what is wanted, at any time and without waiting: the
// addresses with SetListeners, the answers with an exchange.Handler. Run serves
// until its context ends and then drains. fasthttp parses requests and writes
// responses; all it knows of a request is put into an exchange, and the handler
// sees nothing else, so that another front end can stand beside this one.
//
// What holds:
//   - A request that two readers could understand differently is refused with
//     400: lengths, codings, hosts, targets, field names.
//   - A response cut short breaks the client's connection.
//   - A connection is reused only if every byte of the last request was read.
//   - A change of one listener touches no connection.
//   - A connection that waits for a request gives back all but 4 kB of what is ours, see
//     rest.go. TLS keeps buffers and stacks of its own, 15 to 30 kB; proxy/idle_test.go
//     bounds what a whole proxy has for each kind.
//
// Read server.go first, then request_context.go (one request) and client.go (one
// connection).
package serve

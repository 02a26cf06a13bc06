// Package h2 is the HTTP/2 front end for clients (RFC 9113).
//
// The component passes it, by Serve, connections that have negotiated "h2" or begin with its
// preface, and an exchange.Handler. x/net's Framer and hpack parse frames and field blocks;
// streams, windows and all decisions are in this package. It knows nothing of listeners or
// TLS.
//
// What holds:
//   - A request that RFC 9113 calls malformed never reaches the handler: it is counted as a
//     400 and its stream is reset.
//   - A response that was cut short resets its stream.
//   - Memory is bounded: for requests by the windows granted, for responses by the size of
//     one write; a handler with more to send waits for the client.
//   - Frames that cost the server more than the client (resets, pings, settings, empty
//     frames) are paid from a budget, which useful work refills; a client that exhausts it
//     is disconnected.
//   - Every goroutine ends with its connection.
//   - A connection that waits for a request has no goroutine, no buffers and of HPACK only
//     the fields that the client may refer to, see rest.go. What it has cost is not forgotten.
//
// Each connection that does not rest has one goroutine that reads, one per request, and one
// that writes while there is something to write. One lock guards them all. Priorities are
// ignored, nothing is pushed, and field blocks use no dynamic table. CONNECT is supported for
// WebSockets only (RFC 8441): the handler sees an HTTP/1.1 Upgrade.
//
// Read server.go first, then conn.go, frames.go (receiving), send.go (sending), stream.go
// (one request) and websocket.go.
package h2

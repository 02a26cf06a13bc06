// Package h2 is the front end that clients speak HTTP/2 to (RFC 9113).
//
// The component hands it connections, by Serve, that have negotiated "h2" or begin
// with its preface, and an exchange.Handler that answers requests. x/net's Framer
// and hpack parse frames and field blocks; streams, windows and everything that
// decides are ours. It knows nothing of listeners or TLS.
//
// What holds:
//   - What RFC 9113 calls malformed never reaches the handler: it is counted as a
//     400 and its stream is reset.
//   - A response cut short resets its stream.
//   - Memory is bounded: requests by the windows we grant, responses by what one
//     write takes; whoever has more to send waits for the client.
//   - What costs us more than the client (resets, pings, settings, empty frames)
//     is paid from a budget that useful work fills; who overdraws it is cut off.
//   - Every goroutine ends with its connection.
//   - A connection that waits for a request has no buffers, see rest.go.
//
// Each connection has one goroutine that reads, one for each request, and one that
// writes while there is something to write. One lock guards them all. Priorities
// are ignored, nothing is pushed, and our field blocks use no dynamic table, so that
// nobody can learn from their size. Of CONNECT there is only what WebSockets need
// (RFC 8441): to the handler it is an Upgrade of HTTP/1.1.
//
// Read server.go first, then conn.go, frames.go (what comes), send.go (what goes),
// stream.go (one request) and websocket.go.
package h2

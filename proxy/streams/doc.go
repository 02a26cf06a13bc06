// Package streams is HTTP/2 from our side (RFC 9113): one connection to a pod, and
// the requests that it carries at once.
//
// Only package upstream imports it, which dials, chooses the connection, and knows
// what a request is worth; here are frames, windows and limits, over package frame.
//
// What holds:
//   - A response reaches nobody that RFC 9113 calls malformed, or that was cut short
//     and does not say so.
//   - What a pod has certainly not looked at is told apart, since it may be sent again.
//   - A stream that nobody reads holds up itself alone: the connection's window is
//     granted as data arrives, each stream's as it is read. So a stream holds no more
//     than its window.
//   - Whatever a pod sends that asks for work and brings none is paid from a budget.
//   - Every goroutine ends with its connection.
//
// Read conn.go first, then frames.go (what comes), headers.go and stream.go (one
// request).
package streams

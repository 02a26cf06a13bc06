// Package streams is an HTTP/2 client (RFC 9113): one connection to a pod, and the requests
// that it carries concurrently.
//
// Only package upstream imports it, which dials, chooses the connection, and decides about
// retries; here are frames, windows and limits, with package frame.
//
// What holds:
//   - A response that RFC 9113 calls malformed, or that was cut short, is never passed on as
//     a complete one.
//   - A request that the pod has certainly not processed is reported as such, since it may be
//     sent again.
//   - A stream that is not read blocks only itself: the connection's window is granted as data
//     arrives, each stream's as it is read. So a stream buffers no more than its window,
//     which is small where one client has many.
//   - Frames from the pod that cause work without benefit are paid from a budget.
//   - Every goroutine ends with its connection.
//
// Read conn.go first, then frames.go (receiving), headers.go and stream.go (one request).
package streams

// Package frame is what both sides of HTTP/2 have in common (RFC 9113): frames and
// field blocks as we write them, fields as we accept them, and the order in which the
// streams of a connection send what they have.
//
// Package h2 speaks to clients with it, and package streams to pods. It is pure, save
// that an Input reads from what its owner gives it: that is who holds the lock, writes,
// and knows the time.
//
// What holds:
//   - Nothing is sent beyond a window, and no stream keeps the others waiting.
//   - What is sent is copied once, into what is about to be written.
//   - Our field blocks use no dynamic table, so that nobody can learn from their size.
//
// Read output.go first.
package frame

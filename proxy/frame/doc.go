// Package frame is what both sides of HTTP/2 (RFC 9113) have in common: writing frames and
// field blocks, validating received fields, and scheduling the streams of a connection.
//
// Package h2 uses it towards clients, package streams towards pods. It is pure, except that
// an Input reads from the io.Reader of its owner. The owner holds the lock, writes, and
// passes the time.
//
// What holds:
//   - Nothing is sent beyond a flow-control window, and no stream starves the others.
//   - Data is copied once, into the write buffer.
//   - Field blocks are written without the dynamic table of HPACK, so that their size
//     reveals nothing (RFC 7541 section 7.1).
//
// Read output.go first.
package frame

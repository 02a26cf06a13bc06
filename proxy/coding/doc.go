// Package coding compresses response bodies: it negotiates the content coding with the client
// (RFC 9110 section 12.5.3), and encodes a body while it is read.
//
// Package filter decides which responses to compress. The package is pure: it starts no
// goroutine and waits only for the body that it reads.
//
// What holds: bytes that were read from a body leave the encoder before more are read, so a
// stream of events stays live. A truncated body is truncated after encoding, too. Encoders are
// pooled, and shared by all routes.
//
// Read accept.go first, then body.go.
package coding

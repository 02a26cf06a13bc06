// Package coding compresses the bodies of responses: which content coding a client
// takes (RFC 9110 section 12.5.3), and a body that is encoded while it is read.
//
// Package filter decides which responses are worth it. The package is pure: it
// starts nothing and waits for nobody but the body that it reads.
//
// What holds: what was read of a body has left the encoder before more of it is
// read, so a stream of events stays live. A body that breaks off does not end well
// once it is encoded either. Encoders are kept, and shared by all routes.
//
// Read accept.go first, then body.go.
package coding

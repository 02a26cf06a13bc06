// Package live asks for real for what `quayside trace` has explained, from the machine
// that it runs on: the name in DNS, the neighbour on the LAN, a TCP connection, a TLS
// handshake, one HTTP request. What it finds are links as explain's, so that one
// verdict is about both.
//
// It keeps these promises: it sends what any client sends and needs no privilege; every
// question is bounded in time and every answer in length; it shows nobody a secret, and
// follows no redirect.
//
// Read live.go first, then http.go.
package live

// Package proxyheader parses and writes PROXY protocol headers, by which a load balancer
// passes on the addresses of a connection: versions 1 and 2 of
// https://www.haproxy.org/download/2.8/doc/proxy-protocol.txt.
//
// It does not know who sent a header, and so not whether to trust it. Package serve parses
// them, package upstream writes them.
//
// What holds:
//   - A header that is accepted has one meaning: no leading zeros, no second space, no
//     address of another family than it names, no wrong checksum.
//   - A refused header allocates nothing, and at most MaxSize bytes are read.
//
// Read parse.go first.
package proxyheader

// Package proxyheader reads and writes PROXY headers, by which a load balancer tells
// where a connection comes from that it hands on: versions 1 and 2 of
// https://www.haproxy.org/download/2.8/doc/proxy-protocol.txt.
//
// It knows nothing of connections, and so not whether a header may be believed: that
// depends on who sent it. Package serve reads them, package upstream writes them.
//
// What it keeps true:
//   - What is accepted means one thing: no number with leading zeros, no second space,
//     no address of another family than the header names, no checksum that is wrong.
//   - Nothing is allocated for what is refused, and no more than MaxSize bytes are
//     asked for.
//
// Begin with parse.go.
package proxyheader

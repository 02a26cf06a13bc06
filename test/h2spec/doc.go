// Package conformance puts what is served before h2spec, a suite of other people for
// servers of HTTP/2 (RFC 7540, whose demands RFC 9113 keeps, and RFC 7541), with its
// strict cases too: over TLS and by prior knowledge, through the built binary, with a pod
// behind it.
//
// It is a module of its own, so that the product's go.mod stays small. The benchmark
// counts the cases that nginx passes, in the same run.
package conformance

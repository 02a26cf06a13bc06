// Package podserver is the small HTTP server that stands in every pod of the
// lab. It answers each request with what it saw of it, so that a test can ask which
// pod answered, and which client that pod saw.
//
// test/lab/agent runs it; test/lab and the tests decode Reply.
//
//	GET /anything          a Reply as JSON
//	GET /…?delay=200ms     the same, later
//	GET /…?status=503      the same, with this status
//	GET /…?size=4096       the same, padded to about this many bytes
//	POST /…                the same, with the length of the body read
//	GET /…  Upgrade: …     101, then an echo of every byte (not WebSocket
//	                       framing: what crosses a proxy is bytes)
//
// Read server.go first.
package podserver

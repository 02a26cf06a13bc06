// Package otlp writes and reads what the OpenTelemetry protocol says of traces
// (https://opentelemetry.io/docs/specs/otlp/, version 1), as bytes of Protocol Buffers:
// the span of one exchange, a request with many, and the answer to that.
//
// Package dispatch has a Record per exchange that is recorded, package exporter sends
// what they become. The package is pure. It is not the SDK of OpenTelemetry: there is
// one kind of span here, whose attributes are those of the semantic conventions for
// servers of HTTP.
//
// What holds: whatever bytes clients send, a span is a valid message, since all text in
// it is UTF-8 and cut to a length; so nobody can have a collector refuse the spans that
// travel with his own. No query is told, which may hold secrets. A span costs no
// allocation once its Record is warm. An answer is strictly read.
//
// Read span.go first, then wire.go.
package otlp

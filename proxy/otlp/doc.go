// Package otlp encodes and decodes trace messages of the OpenTelemetry protocol
// (https://opentelemetry.io/docs/specs/otlp/, version 1) as Protocol Buffers: the span of one
// exchange, an export request, and its response.
//
// Package dispatch has a Record for each exchange that is recorded; package exporter sends
// the encoded spans. The package is pure. It does not use the OpenTelemetry SDK: there is one
// kind of span, with the attributes of the semantic conventions for HTTP servers.
//
// What holds: a span is a valid message whatever bytes clients send, since all text in it is
// made UTF-8 and cut to a length; so no client can make a collector reject the other spans of
// a batch. The query of a URL is left out, since it may hold secrets. A span costs no
// allocation once its Record is warm. Responses are parsed strictly.
//
// Read span.go first, then wire.go.
package otlp

// Package exporter sends the spans of exchanges to an OpenTelemetry collector, by gRPC
// without TLS, and never blocks the caller.
//
// The component makes one Exporter, declares with Set where spans go, and runs it; package
// dispatch passes it spans through an interface of its own. Package otlp encodes them.
//
// What holds:
//   - Span copies into bounded memory (spans and bytes) and returns. What does not fit is
//     dropped and counted, and so is what the collector did not accept.
//   - A batch is sent when it is full or its first span has waited for the delay.
//   - A collector may be down, stall, send without end or reset: a request has a deadline
//     and a response a maximum size; only UNAVAILABLE is retried, with growing pauses, for
//     at most a minute.
//   - When its context ends, Run sends what is left, within five seconds.
//
// Read exporter.go first, then queue.go and send.go.
package exporter

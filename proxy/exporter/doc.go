// Package exporter sends the spans of exchanges to a collector of OpenTelemetry, by
// gRPC without TLS, and never makes who has them wait.
//
// The component makes one Exporter, declares with Set where spans go, and runs it;
// package dispatch gives it spans through an interface of its own. What they say is
// package otlp's.
//
// What holds:
//   - Span copies into memory that is bounded, in spans and in bytes, and returns. What
//     does not fit is dropped and counted, as is what the collector did not take.
//   - A batch leaves when it is full or its first span has waited for the delay.
//   - A collector may be away, stall, talk without end or reset: a question has a
//     deadline, an answer a size, and only what was unavailable is asked again, with
//     pauses that grow and for a minute at most.
//   - Run sends what is left when its context ends, and takes five seconds for that.
//
// Read exporter.go first, then queue.go and send.go.
package exporter

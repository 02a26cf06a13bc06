// Package explain describes the state of a cluster: `quayside status` prints its Report,
// `quayside trace` its Path, and /state and /trace serve the same values as JSON.
//
// It is pure: both are computed from a snapshot and the output of the compilers, and written to
// any io.Writer. A Path is computed as the components would, and sends no packet. Neither ever
// has the value of a Secret.
//
// Read report.go first, then trace.go.
package explain

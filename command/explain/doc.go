// Package explain puts the state of a cluster into words: `quayside status` is
// its Report, `quayside trace` its Path, and /state and /trace serve the same
// values as JSON.
//
// It is pure: both are computed from a snapshot and what the compilers made of
// it, and written to any io.Writer. A Path is worked out as the components would, and
// sends no packet. Neither ever shows the value of a Secret.
//
// Read report.go first, then trace.go.
package explain

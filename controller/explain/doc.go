// Package explain says what the house knows in words for people: `quayside
// status` is its Report, and `/state` serves the same value as JSON.
//
// It is pure: a Report is computed from a snapshot and the Problems that the
// compilers found, and written to any io.Writer. It never shows the value of a
// Secret, because it never reads one.
//
// Read report.go first, then text.go.
package explain

// Package filter changes exchanges on their way between a front end and an
// upstream. A Filter is what one option does to the exchanges of a route, a Chain
// all that a route's options do. Forwarded passes on who the client is:
// X-Forwarded-* and its kin.
//
// The package is pure: time and randomness are arguments, and an exchange that
// passes through costs no allocation. Package dispatch runs the filters; they know
// neither front ends nor upstreams.
//
// Read filter.go first, then answers.go.
package filter

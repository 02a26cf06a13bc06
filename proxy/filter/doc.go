// Package filter changes exchanges on their way between a front end and an
// upstream. A Filter is what one option does to the exchanges of a route, a Chain
// all that a route's options do. Forwarded passes on who the client is:
// X-Forwarded-* and its kin.
//
// The package is pure: time and randomness are arguments, and an exchange that
// passes through costs no allocation. Package dispatch runs the filters; they know
// neither front ends nor upstreams.
//
// Package route parses options into Settings; Compile turns them into the chain of
// a route. What a Settings holds was checked when it was parsed, and all the same no
// value of it can end the field that it is written into.
//
// What holds: a guard that cannot decide refuses. What is counted of clients is
// bounded in memory. No filter waits, save for a password that is checked first.
//
// Read filter.go first, then settings.go.
package filter

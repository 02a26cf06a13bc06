// Package filter changes exchanges on their way between a front end and an
// upstream. Forwarded passes on who the client is: X-Forwarded-* and its kin.
//
// The package is pure: time and randomness are arguments, and an exchange that
// passes through costs no allocation. Front ends call it; it knows none of them.
//
// Read forwarded.go.
package filter

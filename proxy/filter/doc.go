// Package filter changes exchanges on their way between a front end and an
// upstream. Forwarded tells the upstream who really asked.
//
// The package is pure: time and randomness are arguments, and an exchange that
// passes through costs no allocation. Front ends call it; it knows none of them.
//
// Read forwarded.go.
package filter

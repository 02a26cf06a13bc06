// Package filter changes exchanges between a front end and an upstream. A Filter is what one
// option does to the exchanges of a route, a Chain all that the route's options do.
// Forwarded sets X-Forwarded-* and related fields.
//
// The package is pure: time and randomness are arguments, and a filter that changes nothing
// allocates nothing. Package dispatch runs the filters; they know neither front ends nor
// upstreams. How to add one: see the recipe in the doc.go of package dispatch.
//
// Package route parses options into Settings; Compile turns them into the chain of a route.
// What snippets of nginx do is a Script, see script.go, and error_page.go for what is answered
// where something is wrong.
// Settings are validated when they are parsed; even so, no value in them can end the header
// field into which it is written.
//
// What holds: a guard that cannot decide refuses. Counters per client use bounded memory. No
// filter waits, apart from the first check of a password.
//
// Read filter.go first, then settings.go.
package filter

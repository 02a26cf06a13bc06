// Vulnerabilities reports what the Go vulnerability database knows of the code that Quayside
// calls, its libraries and Go's own, and fails unless each entry has an answer. Nobody
// imports it; "make vulnerabilities" runs it.
//
// It asks govulncheck, which follows calls: what is required but never called is left out.
// Where the database cannot be reached, it is made of its own source, a Go module, so that
// a proxy for modules is enough.
//
// Start with main.go; answers.go has the answers.
package main

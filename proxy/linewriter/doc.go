// Package linewriter writes lines to a file, a pipe or a socket without ever making
// who has them wait.
//
// The component makes one Writer for the access log and runs it; package dispatch
// gives it lines through an interface of its own. The package knows nothing of what
// a line says.
//
// What holds: Write copies into memory of a fixed size and returns; what does not fit
// is dropped and counted, as is what could not be written. Lines leave in order and
// whole, except where the system writes half of one. Run ends soon after its context,
// even where a write never returns.
//
// Read writer.go.
package linewriter

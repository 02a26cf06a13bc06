// Package linewriter writes lines to a file, a pipe or a socket without ever blocking the
// caller.
//
// The component makes one Writer for the access log and runs it; package dispatch passes it
// lines through an interface of its own.
//
// What holds: Write copies into memory of a fixed size and returns; what does not fit is
// dropped and counted, and so is what could not be written. Lines are written in order and
// whole, unless a write is short. Run returns soon after its context ends, even if a write
// never returns.
//
// Read writer.go.
package linewriter

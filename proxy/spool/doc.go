// Package spool keeps in temporary files what is too long for memory: bodies of
// requests that are gathered before anybody is asked.
//
// The component makes one Spool and gives it to package dispatch through an interface
// of its own. The package knows nothing of what it keeps.
//
// What holds: a file loses its name as it is made, so that it goes with its last
// reader, with the process too, and nobody else can open it. All files together never
// hold more than they may; who asks for more is told so at once and waits for nothing.
// A disk that is full or broken is an error of the one file that met it.
//
// Read spool.go.
package spool

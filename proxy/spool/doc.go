// Package spool keeps request bodies that are too long for memory in temporary files, while
// they are buffered before a backend is asked.
//
// The component makes one Spool and passes it to package dispatch through an interface of its
// own.
//
// What holds: a file is unlinked as soon as it is made, so it disappears with its last reader
// or with the process, and no other process can open it. All files together never exceed the
// limit; a write beyond it fails at once. A full or broken disk is an error of the one file
// that meets it.
//
// Read spool.go.
package spool

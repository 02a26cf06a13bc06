// Package privatefile keeps a few bytes for the next life of a process, in a file that
// nobody else may read.
//
// Package cluster keeps what it knows in one, command the key of a speaker. The
// package knows nothing of what it keeps.
//
// It keeps these promises: a file is there as a whole or not at all, of mode 0600; one
// that is somebody else's, that others may read or write, that is longer than the
// reader wants or no file at all is refused, and reading it never waits.
//
// Read privatefile.go.
package privatefile

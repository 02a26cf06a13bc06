// Package privatefile keeps a few bytes from one run of a process to the next, in a file that
// only its user can read.
//
// Package cluster stores the last known state of the cluster in one, command the key of a
// speaker.
//
// It keeps these promises: a file is written as a whole or not at all, with mode 0600; a file
// that belongs to another user, that others may read or write, that is longer than the reader
// allows, or that is not a regular file is refused, and reading never blocks.
//
// Read privatefile.go.
package privatefile

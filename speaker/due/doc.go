// Package due keeps things in the order in which they are due: what a driver of the
// speaker is to announce, to send or to give up next.
//
// It is pure: time is an argument. Only the drivers and the tests of the speaker
// import it. A Queue keeps these promises:
//   - First is what is due first, and of two that are due at once what was set
//     first, so that the same calls give the same order;
//   - an Entry is in one Queue at most once; to set it again is to move it;
//   - whatever is in the queue moves without an allocation.
package due

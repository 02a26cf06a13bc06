// Package due is a queue ordered by time: what a driver of the speaker is to announce, to send or
// to time out next.
//
// It is pure: time is an argument. Only the drivers and the tests of the speaker import it. A Queue
// keeps these promises:
//   - First is what is due first; of two that are due at the same time it is the one that was set
//     first, so that the same calls give the same order;
//   - an Entry is in at most one Queue, once; setting it again moves it;
//   - moving an Entry that is in the queue does not allocate.
package due

// Package socket makes system calls on sockets that cannot wait, so that the runtime need
// not know of them: it neither notes that a goroutine enters one, nor looks for somebody
// who has the processor meanwhile.
//
// The front end for HTTP/1.1 and package upstream use it inside the functions that they
// give the runtime's poller, which keeps the descriptor open. A call that would have to
// wait returns EAGAIN, whatever the socket says of itself. On systems other than Linux, and
// with the tag portable, there are IsShortage and Reader, and an EndSilent that does nothing.
package socket

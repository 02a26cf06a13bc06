// Package session is one end of a BFD session as a pure machine: the packet of
// RFC 5880 section 4.1 and the rules of section 6.8, in asynchronous mode and
// without authentication.
//
// Only package bfd imports it, which owns the sockets and the clock. Everything
// that happens to a Session is a call (Receive, Configure, Disable, Enable,
// Excuse), and Tick hands out what is to be sent; Next says when to call it.
// Time and randomness are arguments.
//
// It keeps these promises:
//   - a change of parameters never resets a session: it is told by a poll
//     sequence, and what could make either end give up too early waits for its
//     end (section 6.8.3);
//   - a packet brings forth two at most, an answer to a poll and the news of a
//     change; nothing else that it holds makes this end send more often than its
//     configuration says;
//   - time in which this end did not run is no silence of the other (Excuse).
//
// Echo and demand mode are not used by this end; the other end's demand mode is
// honoured. A packet that claims to be authenticated is refused by Parse.
//
// Read session.go first, then receive.go.
package session

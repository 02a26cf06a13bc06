// Package session is one end of a BFD session as a pure state machine: the packet of RFC 5880
// section 4.1 and the rules of section 6.8, in asynchronous mode and without authentication.
//
// Only package bfd imports it, which owns the sockets and the clock. Every event is a call
// (Receive, Configure, Disable, Enable, Excuse); Tick returns what is to be sent, and Next when to
// call it. Time and randomness are arguments.
//
// It keeps these promises:
//   - a change of parameters never resets a session: it is announced by a poll sequence, and a
//     change that could make either end time out too early waits for the end of that
//     (section 6.8.3);
//   - a received packet causes at most two packets, an answer to a poll and the report of a
//     change; nothing else in it makes this end send more often than its configuration says;
//   - time in which this end did not run does not count as silence of the other (Excuse).
//
// This end does not use echo and demand mode; the other end's demand mode is honoured. Parse
// refuses packets with authentication.
//
// Read session.go first, then receive.go.
package session

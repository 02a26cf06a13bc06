// Package stapler keeps OCSP responses (RFC 6960) for certificates that name a
// responder, to be sent along with handshakes (RFC 6066 section 8).
//
// The component declares with Set for which certificates, at any time and without
// waiting; Run fetches the responses, and With adds to a certificate what is known.
// No handshake ever waits for a responder.
//
// What holds:
//   - Only responses that say "good" are sent, that the issuer or one whom it named has
//     signed, and only until their NextUpdate.
//   - Whoever wrote the certificate chose the responder, so it is not trusted: its
//     address is judged when it is connected to, its answer is bounded in size and
//     time, and no redirect is followed.
//
// Read stapler.go first, then fetch.go.
package stapler

// Package stapler fetches OCSP responses (RFC 6960) for certificates that name a responder,
// to be stapled to handshakes (RFC 6066 section 8).
//
// The component declares the certificates with Set, which never blocks; Run fetches the
// responses, and With adds the current one to a certificate. No handshake waits for a
// responder.
//
// What holds:
//   - Only responses with status "good" are stapled that the issuer, or a responder
//     authorised by it, has signed, and only until their nextUpdate.
//   - The author of the certificate chose the responder, so it is not trusted: its address is
//     checked when connecting, its response is bounded in size and time, and no redirect is
//     followed.
//
// Read stapler.go first, then fetch.go.
package stapler

package controller

import (
	"crypto/rand"
	"encoding/base64"

	"quayside.io/cluster/tickets"
)

// keyBytes is the length of a new gossip key: AES-256.
const keyBytes = 32

// NewTicketKey returns a new key of TLS session tickets, or of session cookies.
func NewTicketKey() (key tickets.Key) {
	_, _ = rand.Read(key[:]) // never fails: it ends the program instead
	return key
}

// NewMembersKey returns the content of a key file: one secret per line, here
// one of 32 random bytes in base64.
func NewMembersKey() []byte {
	secret := make([]byte, keyBytes)
	_, _ = rand.Read(secret) // never fails: it ends the program instead
	return append(base64.StdEncoding.AppendEncode(nil, secret), '\n')
}

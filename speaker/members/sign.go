package members

import (
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// kindSigned wraps a message of another kind, signed by the node that it is about: after
// the head 8 bytes of time (microseconds since 1970 by that node's clock), the Ed25519
// signature (RFC 8032), and the message, which names the node again.
const kindSigned = 4

// domain separates these signatures from any other use of the key.
const domain = "quayside.io/members: said v1\x00"

const (
	saidLen  = 8
	proofLen = saidLen + ed25519.SignatureSize
)

// sealed is a message as its node has signed it. It is passed on unchanged.
type sealed struct {
	bytes []byte
	said  uint64
}

// overhead is what a signature adds to a message about a node.
func overhead(node string) int { return 2 + len(node) + proofLen }

// seal signs a message of node.
func seal(key ed25519.PrivateKey, node string, said uint64, inner []byte) *sealed {
	b := make([]byte, 0, overhead(node)+len(inner))
	b = append(append(b, kindSigned, byte(len(node))), node...)
	b = binary.BigEndian.AppendUint64(b, said)
	signature := ed25519.Sign(key, signedText(b, inner))
	return &sealed{append(append(b, signature...), inner...), said}
}

func signedText(head, inner []byte) []byte {
	text := make([]byte, 0, len(domain)+len(head)+len(inner))
	return append(append(append(text, domain...), head...), inner...)
}

// isBy reports whether one of keys has signed s.
func (s *sealed) isBy(keys []ed25519.PublicKey) bool {
	head := 2 + int(s.bytes[1]) + saidLen
	signature, text := s.bytes[head:head+ed25519.SignatureSize], signedText(s.bytes[:head], s.bytes[head+ed25519.SignatureSize:])
	for _, key := range keys {
		if len(key) == ed25519.PublicKeySize && ed25519.Verify(key, text, signature) {
			return true
		}
	}
	return false
}

// parseSealed reads a signed message without verifying the signature. parse has checked
// the head of b.
func parseSealed(b []byte, node string, now time.Time, most uint64) (message, error) {
	head := 2 + len(node)
	if len(b) < head+proofLen+2 {
		return message{}, errTruncated
	}
	said := binary.BigEndian.Uint64(b[head:])
	if said == 0 || said > most {
		return message{}, fmt.Errorf("%s signs at a time that is not believed: %d", node, said)
	}
	inner := b[head+proofLen:]
	if inner[0] == kindSigned {
		return message{}, errors.New("a signature within a signature")
	}
	m, err := parse(inner, now)
	if err != nil {
		return message{}, err
	}
	if m.node != node {
		return message{}, fmt.Errorf("%s signs for %s", node, m.node)
	}
	m.sealed = &sealed{b, said}
	return m, nil
}

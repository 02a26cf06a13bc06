package members

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"quayside.io/speaker/announce"
)

// Kinds of message. A message begins with its kind (1 byte), the length of a node name
// (1 byte) and the name of the node that it is about. Fields may be added at the end:
// readers ignore those that they do not know.
const (
	kindClaims  = 1 // uvarint epoch, address, …
	kindLeaving = 2 // uvarint version, 1 byte of bitLeaving…, 1 byte of bitBehind, 8 bytes life, uvarint count, as many hand-overs
	kindFacts   = 3 // uvarint version, JSON
	// 4 is kindSigned
	kindAsk     = 5 // name of another node: can the receiver reach it? Or the receiver's name and a token: it is to send heartbeats
	kindReached = 6 // name of another node, which the sender has reached
)

// Bits of the first byte of kindLeaving: why a node leaves. Speakers that know only
// bitLeaving read any byte but zero as that.
const (
	bitLeaving = 1 << iota // its speaker is stopping
	bitDrained             // the node is being drained
)

// bitBehind is a bit of the second byte of kindLeaving, which older speakers do not read:
// the node's kube-proxy may not have written its rules.
const bitBehind = 1

// maxMessage is the most bytes that fit a packet beside the overhead of memberlist and of
// encryption. Facts that do not fit are sent by TCP and in push/pull exchanges.
const maxMessage = 1100

// Bounds on received messages.
const (
	maxName       = 253 // of a Kubernetes object
	maxInterfaces = 512
	maxHandsOver  = 256
	maxFacts      = 256 << 10 // maxInterfaces of them take half
	maxState      = 32 << 20
)

var errTruncated = errors.New("message is cut short")

// message is one of the kinds above.
type message struct {
	kind      byte
	node      string
	version   uint64
	about     string // another node
	token     *token // of a request for heartbeats; nil: it is none
	claims    []claimed
	leaving   byte
	flags     byte
	life      uint64                        // a random number of the sending process; 0: it sends none
	handsOver map[netip.Addr]announce.Claim // announce.Facts.HandsOver
	ifaces    []announce.Interface
	sealed    *sealed // as its node has signed it; nil: unsigned
}

type claimed struct {
	address netip.Addr
	epoch   int64
}

func (m *message) append(b []byte) ([]byte, error) {
	b = append(b, m.kind, byte(len(m.node)))
	b = append(b, m.node...)
	switch m.kind {
	case kindClaims:
		for _, c := range m.claims {
			b = appendClaim(b, c)
		}
	case kindLeaving:
		b = binary.AppendUvarint(b, m.version)
		b = append(b, m.leaving, m.flags)
		b = m.appendHandsOver(binary.BigEndian.AppendUint64(b, m.life))
	case kindAsk, kindReached:
		b = append(append(b, byte(len(m.about))), m.about...)
		if m.token != nil {
			b = append(b, m.token[:]...)
		}
	case kindFacts:
		body, err := json.Marshal(m.ifaces)
		if err != nil {
			return nil, fmt.Errorf("encode interfaces: %w", err)
		}
		b = append(binary.AppendUvarint(b, m.version), body...)
	}
	return b, nil
}

func appendClaim(b []byte, c claimed) []byte {
	b = binary.AppendUvarint(b, uint64(c.epoch))
	raw := c.address.AsSlice()
	return append(append(b, byte(len(raw))), raw...)
}

// flagBits is the second byte of kindLeaving for f.
func flagBits(f announce.Facts) byte {
	if f.Behind {
		return bitBehind
	}
	return 0
}

// leavingBits is the first byte of kindLeaving for f.
func leavingBits(f announce.Facts) (bits byte) {
	if f.Leaving {
		bits |= bitLeaving
	}
	if f.Drained {
		bits |= bitDrained
	}
	return bits
}

// claimMessages packs claims of one node into messages that fit a packet, with a
// signature.
func claimMessages(node string, claims []claimed) [][]byte {
	head := append([]byte{kindClaims, byte(len(node))}, node...)
	var out [][]byte
	cur := head
	for _, c := range claims {
		if len(cur) > maxMessage-overhead(node)-32 {
			out = append(out, cur)
			cur = head
		}
		cur = appendClaim(cur[:len(cur):len(cur)], c)
	}
	if len(cur) > len(head) {
		out = append(out, cur)
	}
	return out
}

// parse reads one message and checks every field of it.
func parse(b []byte, now time.Time) (message, error) {
	most := uint64(announce.MaxCount(now))
	if len(b) < 2 || len(b) < 2+int(b[1]) {
		return message{}, errTruncated
	}
	m, whole := message{kind: b[0], node: string(b[2 : 2+int(b[1])])}, b
	b = b[2+int(b[1]):]
	if m.node == "" || len(m.node) > maxName {
		return message{}, fmt.Errorf("node name of %d bytes", len(m.node))
	}
	var err error
	switch m.kind {
	case kindAsk, kindReached:
		m.about, err = parseName(b)
		if end := 1 + len(m.about); err == nil && m.kind == kindAsk && len(b)-end >= len(token{}) {
			t := token(b[end:])
			m.token = &t
		}
	case kindClaims:
		err = m.parseClaims(b, most)
	case kindLeaving, kindFacts:
		err = m.parseWord(b, most)
	case kindSigned:
		return parseSealed(whole, m.node, now, most)
	default:
		err = fmt.Errorf("message of unknown kind %d", m.kind)
	}
	return m, err
}

// parseName reads the name of a node.
func parseName(b []byte) (string, error) {
	if len(b) < 1 || len(b) < 1+int(b[0]) {
		return "", errTruncated
	}
	if b[0] == 0 || b[0] > maxName {
		return "", fmt.Errorf("node name of %d bytes", b[0])
	}
	return string(b[1 : 1+int(b[0])]), nil
}

// parseWord reads a kindLeaving or kindFacts message after its head.
func (m *message) parseWord(b []byte, most uint64) error {
	v, n := binary.Uvarint(b)
	if n <= 0 || len(b) == n {
		return errTruncated
	}
	if v > most {
		return fmt.Errorf("version %d of what %s says is not believed", v, m.node)
	}
	m.version = v
	b = b[n:]
	if m.kind == kindLeaving {
		m.leaving = b[0]
		if len(b) > 1 {
			m.flags = b[1]
		}
		if len(b) >= 10 {
			m.life = binary.BigEndian.Uint64(b[2:])
			return m.parseHandsOver(b[10:], most)
		}
		return nil
	}
	if len(b) > maxFacts {
		return fmt.Errorf("%s reports %d bytes of interfaces; at most %d are believed", m.node, len(b), maxFacts)
	}
	if err := json.Unmarshal(b, &m.ifaces); err != nil {
		return fmt.Errorf("interfaces of %s: %w", m.node, err)
	}
	if len(m.ifaces) > maxInterfaces {
		return fmt.Errorf("%s reports %d interfaces; at most %d are believed", m.node, len(m.ifaces), maxInterfaces)
	}
	return nil
}

// parseClaims skips invalid claims: one does not invalidate the rest of the message.
func (m *message) parseClaims(b []byte, most uint64) error {
	for len(b) > 0 {
		c, rest, err := m.parseClaim(b, most)
		if err != nil {
			return err
		}
		if c.epoch > 0 {
			m.claims = append(m.claims, c)
		}
		b = rest
	}
	return nil
}

// parseClaim reads one claim, and returns what follows it. The epoch of an invalid one is 0.
func (m *message) parseClaim(b []byte, most uint64) (c claimed, rest []byte, err error) {
	epoch, n := binary.Uvarint(b)
	if n <= 0 || len(b) < n+1 || len(b) < n+1+int(b[n]) {
		return c, nil, errTruncated
	}
	raw, rest := b[n+1:n+1+int(b[n])], b[n+1+int(b[n]):]
	a, ok := netip.AddrFromSlice(raw)
	if !ok {
		return c, nil, fmt.Errorf("claim of %s on address %x", m.node, raw)
	}
	if epoch > most {
		epoch = 0
	}
	return claimed{a.Unmap(), int64(epoch)}, rest, nil
}

// appendFramed appends a message to a state, which is messages, each after its length as a
// uvarint.
func appendFramed(b, message []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(message))), message...)
}

// splitState calls each for every message of a state.
func splitState(b []byte, each func([]byte)) error {
	if len(b) > maxState {
		return fmt.Errorf("state of %d bytes; at most %d are believed", len(b), maxState)
	}
	for len(b) > 0 {
		size, n := binary.Uvarint(b)
		if n <= 0 || uint64(len(b)-n) < size {
			return errTruncated
		}
		each(b[n : n+int(size)])
		b = b[n+int(size):]
	}
	return nil
}

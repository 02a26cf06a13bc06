package members

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"hash"
	"net/netip"
	"time"
)

// A heartbeat is a packet by which a member says that it is alive, sent to the nodes that
// asked for it because they would take over its addresses. It is not a memberlist
// message: the goroutine that reads the socket handles it, and it is not answered.
//
//	1 byte    heartbeatMark
//	8 bytes   the request that it serves: the first 8 bytes of the token
//	8 bytes   a number that grows with every heartbeat
//	16 bytes  HMAC-SHA256 of the above, truncated, with the token's key
const (
	heartbeatMark   = 0xb3 // what memberlist encrypts begins with 0 or 1
	heartbeatSealed = 1 + 8 + 8
	heartbeatLen    = heartbeatSealed + 16
)

const (
	// lease is how long heartbeats are sent for one request, and renewal how often a
	// receiver renews its request.
	lease   = 10 * time.Second
	renewal = 3 * time.Second
)

func isHeartbeat(packet []byte) bool {
	return len(packet) == heartbeatLen && packet[0] == heartbeatMark
}

// line sends packets beside memberlist's.
type line interface {
	send(b []byte, to netip.AddrPort) error
}

// token identifies a request for heartbeats: 8 bytes that name it on the wire, and the
// 32-byte key of its HMACs. It is sent in an encrypted message.
type token [8 + 32]byte

func newToken() (t token) {
	_, _ = rand.Read(t[:]) // it never fails
	return t
}

func (t *token) names(packet []byte) bool { return [8]byte(packet[1:]) == [8]byte(t[:]) }

// sealer computes the HMACs of one request's heartbeats, for one goroutine at a time.
type sealer struct {
	token token
	mac   hash.Hash
	sum   [sha256.Size]byte
}

func newSealer(t token) *sealer { return &sealer{token: t, mac: hmac.New(sha256.New, t[8:])} }

func (s *sealer) seal(packet []byte) []byte {
	s.mac.Reset()
	s.mac.Write(packet[:heartbeatSealed])
	return s.mac.Sum(s.sum[:0])[:heartbeatLen-heartbeatSealed]
}

// write writes a heartbeat.
func (s *sealer) write(packet []byte, number uint64) {
	packet[0] = heartbeatMark
	copy(packet[1:9], s.token[:])
	binary.BigEndian.PutUint64(packet[9:], number)
	copy(packet[heartbeatSealed:], s.seal(packet))
}

// holds reports whether a heartbeat belongs to this request, and returns its number.
func (s *sealer) holds(packet []byte) (number uint64, ok bool) {
	if !s.token.names(packet) || subtle.ConstantTimeCompare(s.seal(packet), packet[heartbeatSealed:]) == 0 {
		return 0, false
	}
	return binary.BigEndian.Uint64(packet[9:]), true
}

// heartbeats sends this node's heartbeats, for one goroutine at a time.
type heartbeats struct {
	line   line
	every  time.Duration
	next   time.Time // when the next are due; zero: there is no subscriber
	number uint64
	packet [heartbeatLen]byte
	to     map[string]*subscriber // by name
}

// subscriber is a member that has asked for heartbeats.
type subscriber struct {
	*sealer
	addr  netip.AddrPort
	until time.Time
}

func newHeartbeats(l line, every time.Duration) *heartbeats {
	return &heartbeats{line: l, every: every, to: map[string]*subscriber{}}
}

// request adds a subscriber, whose first heartbeat is due at once, or renews its lease.
func (b *heartbeats) request(name string, addr netip.AddrPort, t token, now time.Time) {
	l := b.to[name]
	if l == nil || l.token != t {
		l = &subscriber{sealer: newSealer(t)}
		b.to[name] = l
		b.next = now
	}
	l.addr, l.until = addr, now.Add(lease)
}

// sendDue sends the heartbeats if they are due by a time.
func (b *heartbeats) sendDue(by, now time.Time) {
	if b.next.IsZero() || b.next.After(by) {
		return
	}
	b.next = time.Time{}
	if b.send(now) {
		b.next = now.Add(b.every)
	}
}

// send sends a heartbeat to every subscriber, and reports whether there is one.
func (b *heartbeats) send(now time.Time) bool {
	b.number = max(b.number+1, uint64(now.UnixNano()))
	packet := b.packet[:]
	for name, l := range b.to {
		if now.After(l.until) {
			delete(b.to, name)
			continue
		}
		l.write(packet, b.number)
		_ = b.line.send(packet, l.addr) // one that is lost is missed, and asked for
	}
	return len(b.to) > 0
}

// heartbeatReceiver verifies the heartbeats of one other member, for one goroutine at a
// time.
type heartbeatReceiver struct {
	*sealer             // nil: none have been requested
	requested time.Time // when the current request was made
	renewed   time.Time // when it was last sent
	last      uint64    // the number of the newest heartbeat
	heard     time.Time // when it arrived; zero: none has for this request
}

// request replaces the request by a new one.
func (p *heartbeatReceiver) request(now time.Time) token {
	*p = heartbeatReceiver{sealer: newSealer(newToken()), requested: now, renewed: now}
	return p.token
}

// takes reports whether a packet is a heartbeat of this request and newer than those
// before it, and records it.
func (p *heartbeatReceiver) takes(packet []byte, now time.Time) bool {
	if p.sealer == nil {
		return false
	}
	number, ok := p.holds(packet)
	if !ok || number <= p.last {
		return false
	}
	p.last, p.heard = number, now
	return true
}

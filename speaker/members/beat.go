package members

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"hash"
	"net/netip"
	"sync"
	"time"
)

// A beat is a packet by which a member says unasked that it lives, to those who would
// follow it and have asked for that. It is no message of memberlist: who reads the
// socket takes it in, no other goroutine wakes for it, and nothing is answered.
//
//	byte      beatMark
//	8 bytes   which request it serves, as the token names it
//	8 bytes   a number that grows from one beat to the next
//	16 bytes  HMAC-SHA256 of all of that by the token's key
const (
	beatMark   = 0xb3 // what memberlist encrypts begins with 0 or 1
	beatSealed = 1 + 8 + 8
	beatLen    = beatSealed + 16
)

const (
	// lease is how long beats are sent for one request, and renewal how often whoever
	// hears them asks for more.
	lease   = 10 * time.Second
	renewal = 3 * time.Second
)

func isBeat(packet []byte) bool { return len(packet) == beatLen && packet[0] == beatMark }

// line is what carries beats.
type line interface {
	send(b []byte, to netip.AddrPort) error
}

// token is a request for beats: what names it on the wire, and the key of its beats. It
// travels in a message, encrypted.
type token [8 + 32]byte

func newToken() (t token) {
	_, _ = rand.Read(t[:]) // it never fails
	return t
}

func (t *token) names(beat []byte) bool { return [8]byte(beat[1:]) == [8]byte(t[:]) }

// sealer makes the seals of one request's beats, for one goroutine at a time.
type sealer struct {
	token token
	mac   hash.Hash
	sum   [sha256.Size]byte
}

func newSealer(t token) *sealer { return &sealer{token: t, mac: hmac.New(sha256.New, t[8:])} }

func (s *sealer) seal(beat []byte) []byte {
	s.mac.Reset()
	s.mac.Write(beat[:beatSealed])
	return s.mac.Sum(s.sum[:0])[:beatLen-beatSealed]
}

// write writes a beat.
func (s *sealer) write(beat []byte, number uint64) {
	beat[0] = beatMark
	copy(beat[1:9], s.token[:])
	binary.BigEndian.PutUint64(beat[9:], number)
	copy(beat[beatSealed:], s.seal(beat))
}

// holds reports whether a beat is of this request, and which one.
func (s *sealer) holds(beat []byte) (number uint64, ok bool) {
	if !s.token.names(beat) || subtle.ConstantTimeCompare(s.seal(beat), beat[beatSealed:]) == 0 {
		return 0, false
	}
	return binary.BigEndian.Uint64(beat[9:]), true
}

// beats are those that this node sends.
type beats struct {
	line  line
	every time.Duration
	first chan struct{} // there is somebody to send to

	mu     sync.Mutex
	number uint64
	packet [beatLen]byte
	to     map[string]*audience // by name
}

// audience is a member that has asked for beats.
type audience struct {
	*sealer
	addr  netip.AddrPort
	until time.Time
}

func newBeats(l line, every time.Duration) *beats {
	return &beats{line: l, every: every, first: make(chan struct{}, 1), to: map[string]*audience{}}
}

// request notes that a member wants to hear of this one.
func (b *beats) request(name string, addr netip.AddrPort, t token) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.to[name]
	if l == nil || l.token != t {
		l = &audience{sealer: newSealer(t)}
		b.to[name] = l
		poke(b.first)
	}
	l.addr, l.until = addr, time.Now().Add(lease)
}

// run sends beats until ctx ends.
func (b *beats) run(ctx context.Context) {
	next := time.NewTimer(b.every)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.first:
		case <-next.C:
		}
		if b.send(time.Now()) {
			next.Reset(b.every)
		}
	}
}

// send sends a beat to everybody, and reports whether there is anybody.
func (b *beats) send(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.number = max(b.number+1, uint64(now.UnixNano()))
	beat := b.packet[:]
	for name, l := range b.to {
		if now.After(l.until) {
			delete(b.to, name)
			continue
		}
		l.write(beat, b.number)
		_ = b.line.send(beat, l.addr) // one that is lost is missed, and asked for
	}
	return len(b.to) > 0
}

// pulse is what one knows of the beats of another, for one goroutine at a time.
type pulse struct {
	*sealer             // nil: it was not asked for any
	requested time.Time // that
	last      uint64
	heard     time.Time // zero: none for this request
}

// request makes another request.
func (p *pulse) request(now time.Time) token {
	*p = pulse{sealer: newSealer(newToken()), requested: now}
	return p.token
}

// takes takes in a beat, if it is one of its and newer than those before.
func (p *pulse) takes(beat []byte, now time.Time) bool {
	if p.sealer == nil {
		return false
	}
	number, ok := p.holds(beat)
	if !ok || number <= p.last {
		return false
	}
	p.last, p.heard = number, now
	return true
}

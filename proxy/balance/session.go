package balance

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"iter"
	"time"

	"quayside.io/proxy/exchange"
)

// Session is what a request says about which endpoint is to answer: a hash, or
// the endpoint that its cookie names. The zero value says nothing.
type Session struct {
	kind sessionKind
	key  uint64 // a hash, or the seed of an endpoint
	// fresh says that the client has to be told the key: it sent none, or what it
	// sent does not hold any more.
	fresh bool
	draws uint64 // where further keys are drawn from
}

type sessionKind uint8

const (
	anywhere sessionKind = iota
	byKey                // rendezvous with key, load bounded
	bySticky             // rendezvous with key, whatever the load
	byTag                // the endpoint whose seed is key
)

// Session reads what r says. random is a random number, for a client that needs
// a cookie and has none.
func (s *Set) Session(r *exchange.Request, random uint64) Session {
	if s == nil || s.plan == nil {
		return Session{}
	}
	p := s.plan
	switch {
	case p.policy.Cookie.Name != "":
		return p.cookieSession(r, random)
	case p.policy.Algorithm == Hash:
		if h, ok := p.key.Hash(r); ok {
			return Session{kind: byKey, key: h, draws: random}
		}
	case p.byClient && r.Client.IsValid():
		return Session{kind: bySticky, key: mix(hashClient(fnvOffset, r))}
	}
	return Session{draws: random}
}

// cookieSession takes the first cookie that is ours. There may be several of one
// name, for different paths.
func (p *plan) cookieSession(r *exchange.Request, random uint64) Session {
	kind := bySticky
	if p.policy.Cookie.Persistent {
		kind = byTag
	}
	for value := range cookies(&r.Header, p.policy.Cookie.Name) {
		key, ok := p.sealer.open(value)
		if !ok {
			continue
		}
		if _, here := p.tagged(key); kind == bySticky || here {
			return Session{kind: kind, key: key, draws: random}
		}
	}
	return Session{kind: kind, key: mix(random), fresh: true, draws: random}
}

// cookieSize is that of a key and its seal, in hex.
const cookieSize = 32

// A sealer seals the keys of one backend.
type sealer [sha256.Size]byte

// sealerOf returns that of a backend. The cookies of one are of no use at another.
func sealerOf(key CookieKey, identity []byte) sealer {
	h := hmac.New(sha256.New, key[:])
	h.Write([]byte("quayside session cookie\x00"))
	h.Write(identity)
	return sealer(h.Sum(nil))
}

// seal is what only somebody who has the CookieKey can make. All that goes in has one
// length and most of what comes out is kept back, so that no seal leads to another.
func (s *sealer) seal(key uint64) uint64 {
	var b [sha256.Size + 8]byte
	copy(b[:], s[:])
	binary.BigEndian.PutUint64(b[sha256.Size:], key)
	sum := sha256.Sum256(b[:])
	return binary.BigEndian.Uint64(sum[:8])
}

// open returns the key of a cookie that we made.
func (s *sealer) open(value []byte) (key uint64, ok bool) {
	var b [cookieSize / 2]byte
	if len(value) != cookieSize {
		return 0, false
	}
	if _, err := hex.Decode(b[:], value); err != nil {
		return 0, false
	}
	key = binary.BigEndian.Uint64(b[:8])
	var want [8]byte
	binary.BigEndian.PutUint64(want[:], s.seal(key))
	return key, subtle.ConstantTimeCompare(b[8:], want[:]) == 1
}

// TellClient adds the cookie to the response of the endpoint at index at, if the
// client needs one. A client whose endpoint failed comes back to it, unless the
// policy says otherwise.
func (s *Set) TellClient(ses *Session, at int, r *exchange.Request, to *exchange.Header, now time.Time) {
	if s.plan == nil || !ses.fresh {
		return
	}
	p := s.plan
	key := ses.key
	if ses.kind == byTag {
		key = p.seeds[at]
	}
	b := make([]byte, 0, 160) // once per session
	b = append(append(b, p.policy.Cookie.Name...), '=')
	var raw [cookieSize / 2]byte
	binary.BigEndian.PutUint64(raw[:8], key)
	binary.BigEndian.PutUint64(raw[8:], p.sealer.seal(key))
	b = hex.AppendEncode(b, raw[:])
	b = p.policy.Cookie.appendAttributes(b, r, now)
	to.AddBorrowed([]byte("Set-Cookie"), b)
}

// cookies yields the values of the cookies called name.
func cookies(h *exchange.Header, name string) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for _, f := range h.Fields() {
			if len(f.Name) != len("Cookie") || !exchange.EqualFold(f.Name, "cookie") {
				continue
			}
			for rest := f.Value; len(rest) > 0; {
				var pair []byte
				pair, rest, _ = bytes.Cut(rest, []byte{';'})
				key, value, ok := bytes.Cut(exchange.TrimSpace(pair), []byte{'='})
				if ok && string(key) == name && !yield(value) {
					return
				}
			}
		}
	}
}

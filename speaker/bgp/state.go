package bgp

import (
	"maps"
	"net/netip"
	"time"
)

// SessionState is how a session stands. It is never modified.
type SessionState struct {
	// Name of the session.
	Name string
	// Peer's address; invalid if the session cannot be.
	Peer netip.Addr
	// State by its name in RFC 4271 8.2.2, such as "Established".
	State string
	Since time.Time
	// LastError is why the session ended, or does not come up, in words; it stays
	// when the session is up again.
	LastError   string
	LastErrorAt time.Time
	// PeerASN is the AS number that the peer of an Established session has.
	PeerASN uint32
	// Announced is how many routes the peer was told.
	Announced int
	// Hash of the routes announced and their attributes: equal on two nodes that
	// announce the same.
	Hash uint64
	// Withheld counts the routes that the peer cannot be told, by the reason.
	Withheld map[string]int
}

func (s *SessionState) equal(o *SessionState) bool {
	return s.Name == o.Name && s.State == o.State && s.LastError == o.LastError && s.PeerASN == o.PeerASN &&
		s.Announced == o.Announced && s.Hash == o.Hash && maps.Equal(s.Withheld, o.Withheld)
}

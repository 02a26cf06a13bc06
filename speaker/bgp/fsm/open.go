package fsm

import (
	"fmt"
	"time"
)

// version of BGP that we speak.
const version = 4

// Subcodes of an OPEN Message Error that we send (RFC 4271 6.2).
const (
	unsupportedVersion   = 1
	badPeerAS            = 2
	badIdentifier        = 3
	unacceptableHoldTime = 6
)

// refuse judges an OPEN; the zero Notification accepts it.
func (m *Machine) refuse(o Open) (Notification, string) {
	refuse := func(sub uint8, data []byte, format string, args ...any) (Notification, string) {
		return Notification{Code: OpenError, Subcode: sub, Data: data}, fmt.Sprintf(format, args...)
	}
	switch {
	case o.Version != version:
		return refuse(unsupportedVersion, []byte{0, version}, "version %d", o.Version)
	case o.ASN == 0: // RFC 7607
		return refuse(badPeerAS, nil, "AS 0")
	case m.cfg.Kinship == Exactly && o.ASN != m.cfg.PeerASN:
		return refuse(badPeerAS, nil, "it says AS %d, and AS %d is configured", o.ASN, m.cfg.PeerASN)
	case m.cfg.Kinship == Internal && o.ASN != m.cfg.LocalASN:
		return refuse(badPeerAS, nil, "it says AS %d, and an internal peer in AS %d is configured", o.ASN, m.cfg.LocalASN)
	case m.cfg.Kinship == External && o.ASN == m.cfg.LocalASN:
		return refuse(badPeerAS, nil, "it says AS %d, our own, and an external peer is configured", o.ASN)
	case o.ID == 0, o.ID == m.cfg.RouterID && o.ASN == m.cfg.LocalASN: // RFC 6286 2.2
		return refuse(badIdentifier, nil, "identifier %s", dotted(o.ID))
	case o.Hold == 1, o.Hold == 2:
		return refuse(unacceptableHoldTime, nil, "hold time %d s", o.Hold)
	}
	return Notification{}, ""
}

func dotted(id uint32) string {
	return fmt.Sprintf("%d.%d.%d.%d", byte(id>>24), byte(id>>16), byte(id>>8), byte(id))
}

// survives resolves a collision of c, whose OPEN has just come, with the other
// connection, and reports whether c is kept (RFC 4271 6.8).
func (m *Machine) survives(now time.Time, c *conn) bool {
	o := m.other(c)
	switch {
	case o.id == 0 || o.state == OpenSent:
		return true // it may still fall behind
	case o.state == Established && m.restartAgreed(o) && c.open.Restart:
		// The peer restarted: its old connection is dead, and it wants no word
		// on it (RFC 4724 section 5).
		if now.Sub(m.upSince) >= m.cfg.Calm {
			m.wait = m.cfg.FirstWait
		}
		m.end(o, Notification{}, "the peer restarted")
		return true
	case o.state == Established:
		m.end(c, collision(), "")
		return false
	}
	keepInbound := !m.dominant(c.open)
	if c.inbound == keepInbound {
		m.end(o, collision(), "")
		return true
	}
	m.end(c, collision(), "")
	return false
}

// dominant says that the connections that we open are kept: our identifier is
// the higher, or of equal ones our AS number (RFC 6286 2.3).
func (m *Machine) dominant(o Open) bool {
	if m.cfg.RouterID != o.ID {
		return m.cfg.RouterID > o.ID
	}
	return m.cfg.LocalASN > o.ASN
}

// restartAgreed says that both sides speak graceful restart.
func (m *Machine) restartAgreed(c *conn) bool { return m.cfg.Restart && c.open.Restart }

// Terms are what both sides agreed on for a connection.
type Terms struct {
	Open Open
	// Hold time and pause between KEEPALIVEs; zero: none.
	Hold, Keepalive time.Duration
}

// Terms of a connection; of one that is gone, none.
func (m *Machine) Terms(id int) Terms {
	c := m.find(id)
	if c == nil {
		return Terms{}
	}
	return Terms{Open: c.open, Hold: c.hold, Keepalive: c.beat}
}

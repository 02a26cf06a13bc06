package rtadv

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"
)

// Types of ICMPv6 messages (RFC 4861 4.1 and 4.2), and what comes before their options.
const (
	solicitation       = 133
	advertisement      = 134
	solicitationHead   = 8
	advertisementHead  = 16
	hopLimit           = 255 // of all neighbour discovery: no router has passed it on
	optionUnit         = 8   // bytes
	silence            = 30 * time.Second
	longestSilence     = 9000 * time.Second // AdvDefaultLifetime of RFC 4861 6.2.1
	lifetimeAt         = 6
	optionLengthOffset = 1
)

// message is what counts of a packet.
type message struct {
	kind byte // solicitation or advertisement
	// lifetime of an advertisement: how long its sender is a default router.
	lifetime time.Duration
}

// parse reads a message as RFC 4861 6.1.1 and 6.1.2 want it checked. The kernel
// has checked the checksum.
func parse(b []byte, hops int, from netip.Addr) (message, bool) {
	if hops != hopLimit || len(b) < solicitationHead || b[1] != 0 {
		return message{}, false
	}
	switch m := (message{kind: b[0]}); {
	case m.kind == solicitation:
		return m, wellFormed(b[solicitationHead:])
	case m.kind == advertisement && len(b) >= advertisementHead:
		m.lifetime = time.Duration(binary.BigEndian.Uint16(b[lifetimeAt:])) * time.Second
		return m, from.Is6() && from.IsLinkLocalUnicast() && wellFormed(b[advertisementHead:])
	}
	return message{}, false
}

// wellFormed reports whether options have lengths that add up; what is in them
// does not matter here.
func wellFormed(options []byte) bool {
	for len(options) > 0 {
		if len(options) < optionUnit {
			return false
		}
		length := int(options[optionLengthOffset]) * optionUnit
		if length == 0 || length > len(options) {
			return false
		}
		options = options[length:]
	}
	return true
}

// speaker is one who advertises. The zero speaker is nobody.
type speaker struct {
	at    netip.Addr
	until time.Time // it is believed to be there
}

// heard is what advertisements have said of a link: which router is at its end.
type heard struct {
	router speaker
	// other advertises as well; of several the one that was heard first.
	other speaker
}

// hear takes an advertisement.
func (h *heard) hear(now time.Time, from netip.Addr, lifetime time.Duration) {
	s := speaker{from, now.Add(min(max(lifetime, silence), longestSilence))}
	switch {
	case from == h.router.at:
		h.router = s
	case now.After(h.router.until): // so it is with nobody
		h.router = s
		if h.other.at == from {
			h.other = speaker{}
		}
	case from == h.other.at || now.After(h.other.until):
		h.other = s
	}
}

// interrupted says that the link was down: another router may be there by now.
func (h *heard) interrupted() {
	h.router.until, h.other = time.Time{}, speaker{}
}

// state is what is known of the link.
func (h *heard) state(now time.Time, link string) Link {
	l := Link{Router: h.router.at}
	switch {
	case !l.Router.IsValid():
		l.Problem = fmt.Sprintf("no Router Advertisement was heard on interface %s yet", link)
	case h.other.at.IsValid() && !now.After(h.other.until):
		l.Problem = fmt.Sprintf("%v and %v both advertise as routers on interface %s: an unnumbered session is for a link with one, and goes to the first", l.Router.WithZone(""), h.other.at.WithZone(""), link)
	}
	return l
}

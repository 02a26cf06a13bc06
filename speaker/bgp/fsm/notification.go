package fsm

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Error codes of a NOTIFICATION.
const (
	HeaderError       = 1
	OpenError         = 2
	UpdateError       = 3
	HoldTimerExpired  = 4
	StateMachineError = 5
	Cease             = 6
	RefreshError      = 7 // RFC 7313
	SendHoldExpired   = 8 // RFC 9687
)

// Subcodes of Cease (RFC 4486).
const (
	AdminShutdown  = 2
	Deconfigured   = 3
	AdminReset     = 4
	ConfigChanged  = 6
	Collision      = 7
	BFDDown        = 10  // RFC 9384
	maxCommunicate = 255 // bytes of a shutdown communication (RFC 9003)
)

// Notification is the content of a NOTIFICATION message; Code zero is none.
type Notification struct {
	Code, Subcode uint8
	Data          []byte
}

func collision() Notification { return Notification{Code: Cease, Subcode: Collision} }

// Ceasing is a Cease with a shutdown communication (RFC 9003), which is cut to
// 255 bytes. Only AdminShutdown and AdminReset carry one.
func Ceasing(subcode uint8, text string) Notification {
	n := Notification{Code: Cease, Subcode: subcode}
	if text == "" || subcode != AdminShutdown && subcode != AdminReset {
		return n
	}
	for len(text) > maxCommunicate || !utf8.ValidString(text) {
		text = text[:len(text)-1]
	}
	n.Data = append([]byte{byte(len(text))}, text...)
	return n
}

// String is the notification in words, with the peer's own words where it sent any.
func (n Notification) String() string {
	name, known := codeNames(n.Code)
	if !known {
		return fmt.Sprintf("code %d subcode %d", n.Code, n.Subcode)
	}
	subs := subcodeNames(n.Code)
	switch {
	case int(n.Subcode) < len(subs) && subs[n.Subcode] != "":
		name += ", " + subs[n.Subcode]
	case n.Subcode != 0:
		name += ", subcode " + strconv.Itoa(int(n.Subcode))
	}
	if text := n.Communication(); text != "" {
		name += ": " + strconv.Quote(text)
	}
	return name
}

// Communication is the text that the peer's operator sent along (RFC 9003), if
// it is valid; control characters are left out.
func (n Notification) Communication() string {
	if n.Code != Cease || n.Subcode != AdminShutdown && n.Subcode != AdminReset || len(n.Data) == 0 {
		return ""
	}
	length, text := int(n.Data[0]), n.Data[1:]
	if length == 0 || length > len(text) || !utf8.Valid(text[:length]) {
		return ""
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, string(text[:length]))
}

func codeNames(code uint8) (string, bool) {
	names := [...]string{"", "Message Header Error", "OPEN Message Error", "UPDATE Message Error", "Hold Timer Expired",
		"Finite State Machine Error", "Cease", "ROUTE-REFRESH Message Error", "Send Hold Timer Expired"}
	if code == 0 || int(code) >= len(names) {
		return "", false
	}
	return names[code], true
}

// subcodeNames are indexed by subcode (IANA, BGP Error Subcodes).
func subcodeNames(code uint8) []string {
	switch code {
	case HeaderError:
		return []string{"", "Connection Not Synchronized", "Bad Message Length", "Bad Message Type"}
	case OpenError:
		return []string{"", "Unsupported Version Number", "Bad Peer AS", "Bad BGP Identifier", "Unsupported Optional Parameter",
			"", "Unacceptable Hold Time", "Unsupported Capability"}
	case UpdateError:
		return []string{"", "Malformed Attribute List", "Unrecognized Well-known Attribute", "Missing Well-known Attribute",
			"Attribute Flags Error", "Attribute Length Error", "Invalid ORIGIN Attribute", "", "Invalid NEXT_HOP Attribute",
			"Optional Attribute Error", "Invalid Network Field", "Malformed AS_PATH"}
	case StateMachineError:
		return []string{"", "Unexpected Message in OpenSent", "Unexpected Message in OpenConfirm", "Unexpected Message in Established"}
	case Cease:
		return []string{"", "Maximum Number of Prefixes Reached", "Administrative Shutdown", "Peer De-configured",
			"Administrative Reset", "Connection Rejected", "Other Configuration Change", "Connection Collision Resolution",
			"Out of Resources", "Hard Reset", "BFD Down"}
	}
	return nil
}

package session

import "strconv"

// State of a session, as in a packet.
type State uint8

// The states of RFC 5880 6.2.
const (
	AdminDown State = iota
	Down
	Init
	Up
)

// String is the state's name in the RFC.
func (s State) String() string {
	switch s {
	case AdminDown:
		return "AdminDown"
	case Down:
		return "Down"
	case Init:
		return "Init"
	case Up:
		return "Up"
	}
	return "state " + strconv.Itoa(int(s))
}

// Diag is why an end last changed its state (RFC 5880 4.1).
type Diag uint8

// The diagnostics of RFC 5880. This end gives DiagExpired,
// DiagNeighbor and DiagAdminDown.
const (
	DiagNone Diag = iota
	DiagExpired
	DiagEcho
	DiagNeighbor
	DiagForwarding
	DiagPath
	DiagConcatenated
	DiagAdminDown
	DiagReverse
)

// String says it in words; "" for none.
func (d Diag) String() string {
	switch d {
	case DiagNone:
		return ""
	case DiagExpired:
		return "nothing was heard for the detection time"
	case DiagEcho:
		return "echo packets did not come back"
	case DiagNeighbor:
		return "the neighbor said that it is down"
	case DiagForwarding:
		return "the forwarding plane was reset"
	case DiagPath:
		return "the path is down"
	case DiagConcatenated:
		return "a path beyond this one is down"
	case DiagAdminDown:
		return "taken down by an administrator"
	case DiagReverse:
		return "a path beyond this one is down in reverse"
	}
	return "diagnostic " + strconv.Itoa(int(d))
}

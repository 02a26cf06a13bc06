package fsm

// Kind of an Event.
type Kind uint8

// The events. Those on a connection name it in Event.Conn; events of a
// connection that the machine has closed are ignored.
const (
	Start                Kind = iota // begin
	Stop                             // end all, with Event.Notification if it has a code
	Dialed                           // the attempt succeeded; Conn is the new connection
	DialFailed                       // the attempt failed, for Reason
	Accepted                         // the peer opened a connection
	Lost                             // a connection ended, for Reason
	Malformed                        // a message earned Notification, for Reason
	OpenReceived                     // an OPEN that could be decoded
	KeepaliveReceived                //
	UpdateReceived                   //
	RefreshReceived                  // ROUTE-REFRESH (RFC 2918)
	NotificationReceived             //
	Tick                             // Deadline has passed
)

// String returns the name of the event, or of the message received.
func (k Kind) String() string {
	return [...]string{"Start", "Stop", "Dialed", "DialFailed", "Accepted", "Lost", "Malformed",
		"OPEN", "KEEPALIVE", "UPDATE", "ROUTE-REFRESH", "NOTIFICATION", "Tick"}[k]
}

// Event is something that happened.
type Event struct {
	Kind Kind
	// Conn names the connection, by a number that is never used again and is not zero.
	Conn         int
	Open         Open
	Notification Notification
	Reason       string
}

// Deed is the kind of an Action.
type Deed uint8

// The actions.
const (
	Dial Deed = iota // open a connection, and say Dialed or DialFailed
	CancelDial
	SendOpen
	SendKeepalive
	Notify // send Notification
	Close  // close, after what was sent
	Up     // the session is Established: send the routes
	Down   // the session that was Up is so no more, for Reason (none: on purpose)
	Failed // an attempt failed, for Reason
)

// Action is something to do.
type Action struct {
	Kind         Deed
	Conn         int
	Notification Notification
	Reason       string
}

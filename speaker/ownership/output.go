package ownership

import (
	"net/netip"
	"time"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
)

// Output is what a step asks for. It is immutable, and in this order to be carried
// out: the questions; layer 2; the members, who make others fall silent; the rest.
type Output struct {
	// Plan is the decision that holds now; Plans is how many were made for it.
	Plan  *announce.Plan
	Plans int
	// Waiting says why nothing is announced, neither on the LAN nor to routers; "" it is.
	Waiting string
	// Leaving says that this node hands over, or is about to.
	Leaving bool

	Ask     []*Inquiry
	LAN     Announcing
	Members *Declaration // nil: as before
	Changes []Change
	Report  Report
	// Wake is when to take the next step if nothing happens before.
	Wake time.Time
	End  End
}

// Announcing is what layer 2 is to answer for.
type Announcing struct {
	Addresses map[netip.Addr]Announcement
	// Speakers are the MACs of all speakers, this one's included: two interfaces on
	// one LAN hear each other.
	Speakers map[string]struct{}
	// Nearby are other speakers to ask for signs of life, by interface; see listensOn.
	Nearby map[string][]Host
	// Added says that an address is new. It must be answered for before the members
	// hear of the claim: whoever hands it over falls silent then.
	Added bool
}

// Host is another host on a LAN.
type Host struct {
	Address netip.Addr
	MAC     string // empty: not known
}

// Announcement is how one address is announced.
type Announcement struct {
	Interfaces []string // to answer on; none: every one
	Round      int64    // announced anew whenever it changes
}

// Declaration is what the members are to know of this node.
type Declaration struct {
	Self   netip.Addr // where it is reached; invalid: not known
	Peers  []Peer     // the other nodes, by name
	Watch  []string   // which of them are to be watched, see announce.L2.Watch
	Facts  announce.Facts
	Claims map[netip.Addr]int64 // epochs
	// Known are all addresses that exist.
	Known map[netip.Addr]struct{}
}

// Peer is a node that should have a speaker.
type Peer struct {
	Name string
	Addr netip.Addr
}

// ChangeKind says what a Change is.
type ChangeKind int

// The kinds of changes.
const (
	Taken     ChangeKind = iota // this node owns it now: Take, Outage
	Lost                        // a better claim silences this node's: Address, To
	NotTaken                    // the LAN refuses it: Take, By, Why
	Unasked                     // the LAN could not be asked: Take, Err
	Contested                   // a strange host answers for it too: Address, Interface, By
)

// Change is something that happened to an address, for logs and metrics.
type Change struct {
	Kind ChangeKind
	announce.Take
	To        announce.Claim
	By        announce.Refusal
	Why       string
	Err       error
	Interface string
	Outage    time.Duration // since its dead owner was last seen; 0: it was not
}

// Report is what people are told.
type Report struct {
	// Events are to be written once.
	Events []Notice
	// Status is this node's SpeakerStatus; nil: as before.
	Status *v1alpha1.SpeakerStatusStatus
	// Problems are all, Own those that this node alone can know.
	Problems, Own []snapshot.Problem
}

// Notice is an Event to be written.
type Notice struct {
	About                 snapshot.Ref
	Type, Reason, Message string
}

// End says whether a node that was asked to leave may.
type End int

// The ends.
const (
	Stays   End = iota
	Done        // everything is handed over, or nothing was ever announced
	Overdue     // it has waited for long enough
)

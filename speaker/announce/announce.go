package announce

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
)

// HandOverGrace bounds how long a node that lost its eligibility keeps
// answering while its successor has not claimed the address yet.
const HandOverGrace = 5 * time.Second

// Claim says that Node answers for an address since the event numbered Epoch.
type Claim struct {
	Epoch int64
	Node  string
}

// MaxCount bounds the counters that others may send: epochs, and the versions
// of what they say of themselves, which are microseconds. A claim that nothing
// could beat would stay for ever, also when its node is gone. This bound lies a
// century ahead, beyond what any clock says, and moves on: what is believed now
// can be followed in a moment.
func MaxCount(now time.Time) int64 { return now.AddDate(100, 0, 0).UnixMicro() }

// Beats reports whether c silences o: the higher epoch wins, and among equal
// ones the higher node name.
func (c Claim) Beats(o Claim) bool {
	if c.Epoch != o.Epoch {
		return c.Epoch > o.Epoch
	}
	return c.Node > o.Node
}

// Interface is one link of a node that can carry announcements.
type Interface struct {
	Name string `json:"name"`
	MAC  string `json:"mac,omitempty"`
	// Prefixes are the interface's own addresses with their lengths.
	Prefixes []netip.Prefix `json:"prefixes,omitempty"`
	// Routes are on-link destinations without an own address in them.
	Routes []netip.Prefix `json:"routes,omitempty"`
	// Gateways are the next hops of routes over this interface.
	Gateways []netip.Addr `json:"gateways,omitempty"`
	Up       bool         `json:"up,omitempty"`
	// Deaf says that the interface is up, and that nobody on its LAN answers.
	Deaf bool `json:"deaf,omitempty"`
}

// Facts is what a node says about itself.
type Facts struct {
	// Interfaces are nil while they are not known, which a node without any is not.
	Interfaces []Interface `json:"interfaces,omitempty"`
	// Leaving says that the node's speaker is about to stop.
	Leaving bool `json:"leaving,omitempty"`
	// Drained says that the node itself is to go; see Drained.
	Drained bool `json:"drained,omitempty"`
	// Behind says that the node's kube-proxy may not have written its rules.
	Behind bool `json:"behind,omitempty"`
}

// Refusal is why this node must not take an address just now: somebody on the
// LAN answers for it.
type Refusal struct {
	Node string // the member that answers, or "" for a stranger
	MAC  string
}

// View is what a speaker knows beyond the cluster's objects. The maps are read
// only.
type View struct {
	// Alive are the members believed to live, this node included.
	Alive map[string]struct{}
	// Claims are the best claims heard; those in SpeakerStatuses add to them.
	Claims map[netip.Addr]Claim
	// Facts by node. A node without facts is judged by its SpeakerStatus, and
	// without one its interfaces do not count against it.
	Facts map[string]Facts
	// Refused are the addresses that the LAN says are taken.
	Refused map[netip.Addr]Refusal
	// Remembered are claims of this node that it did not carry out until now: the
	// address had no Service.
	Remembered map[netip.Addr]struct{}
	// HandingOver says since when this node answers only until its successor
	// does; see Answer.HandOver.
	HandingOver map[netip.Addr]time.Time
	// Cut are addresses of this node that were without a link. They may be
	// others' by now, so the LAN is asked before they are answered for again.
	Cut map[netip.Addr]struct{}
	// Lost are the addresses that better claims took from this node.
	Lost map[netip.Addr]Loss
	// Since is that of the plan before; nil before the first: whatever endpoints
	// there are have been there.
	Since map[netip.Addr]time.Time
	// Others is that of the plan before; nil before the first. See BGP.Others.
	Others map[netip.Addr]Other
	// Unserved says where in BGP.Checks kube-proxy has answered that it has no
	// endpoint on this node, and since when it has done so each time.
	Unserved map[netip.AddrPort]time.Time
	// Roll may be that of a plan before; nil: there is none.
	Roll *Roll
	// Before may be the plan before. It is of use where Alive, Claims and Facts are the
	// very maps of its View.
	Before Made
}

// Options are the switches of a speaker.
type Options struct {
	// IgnoreExcludeLabel lets nodes announce that have the label
	// node.kubernetes.io/exclude-from-external-load-balancers.
	IgnoreExcludeLabel bool
	// ExternalIPs announces the addresses in spec.externalIPs of Services that
	// lie in a pool, too.
	ExternalIPs bool
	// Namespace is the only one that passwords of BGP sessions are read from; "":
	// it is not known, and no peer is judged by it.
	Namespace string
}

// Answer is one address that this node answers for.
type Answer struct {
	Services []snapshot.Key
	// Interfaces to answer on, sorted. Empty means that the interfaces of this
	// node are not known.
	Interfaces []string
	Epoch      int64
	// Preference is the address's v1alpha1.Announcing.Preference.
	Preference string
	// HandOver names the node that should claim the address next; until it has,
	// this one keeps answering, for HandOverGrace at most if it may not serve
	// the address any more.
	HandOver string
}

// Cause says why an address changes hands.
type Cause string

// The causes, which are also the label of quayside_l2_ownership_changes_total.
const (
	First      Cause = "first"      // nobody ever claimed it
	Died       Cause = "died"       // its owner is not alive any more
	Leaving    Cause = "leaving"    // its owner is shutting down or being drained
	Ineligible Cause = "ineligible" // its owner may not serve it any more
	Returned   Cause = "returned"   // its owner is back on the LAN: the claim stays as it is
	Preferred  Cause = "preferred"  // preferredNodeSelectors have changed
	Deaf       Cause = "deaf"       // its owner lives, and nobody on the LAN hears it
)

// Take is one address that this node should claim.
type Take struct {
	Address netip.Addr
	Answer  // as it will be once claimed
	From    string
	Cause   Cause
	// Doubtful says that the address was taken from this node by others who live,
	// and that its own watch may be the one that lags. So the LAN is asked whether
	// the owner lets go.
	Doubtful bool
}

// Plan is the decision for one node. It is immutable.
type Plan struct {
	L2  L2
	BGP BGP
	// Problems, sorted.
	Problems []snapshot.Problem
	// Status is the wanted SpeakerStatus, without Members and BGPSessions.
	Status v1alpha1.SpeakerStatusStatus
	// NextWake is when this plan changes by itself; zero: never.
	NextWake time.Time

	reading reading // see Stands
	made    *made   // see Made
}

// L2 is who answers for which address on layer 2.
type L2 struct {
	// Answers are the addresses this node owns.
	Answers map[netip.Addr]Answer
	// Take are the addresses it should claim, in order of address.
	Take []Take
	// Barred are those it would claim, had the LAN not refused.
	Barred []Take
	// Owners names who owns or should own each address; "" nobody can.
	Owners map[netip.Addr]string
	// Since says since when this node has an endpoint for each address of policy
	// Local, whatever announces it; see Settling.
	Since map[netip.Addr]time.Time
	// Claims are the best ones known, from the view and from SpeakerStatuses.
	Claims map[netip.Addr]Claim
	// Watch are the nodes that hold what this one would inherit, those with the most
	// of it first, and MaxWatch of them at most. It is to know of their deaths at once.
	Watch []string
}

// Compile decides for node me. With "" it decides for no node, and the plan holds
// the Problems, which are the same on every node.
func Compile(c *snapshot.Cluster, me string, view View, now time.Time, opts Options) *Plan {
	k := newCompiler(c, me, view, now, opts)
	if !k.resume() {
		k.read()
		k.readLayer2()
		k.readClaims()
		k.readBGP()
		k.reading.places = snapshot.Collect(len(k.asked), maps.All(k.asked))
		k.ground.problems = slices.Clone(k.plan.Problems)
	}
	k.plan.L2.Claims = k.claims
	k.decide()
	k.decideBGP()
	k.plan.Status = k.status()
	made := k.made // without the cluster, and whatever else a compilation needs
	k.plan.reading, k.plan.made = k.reading, &made
	slices.SortFunc(k.plan.Problems, snapshot.Problem.Compare)
	k.plan.Problems = slices.Compact(k.plan.Problems)
	return k.plan
}

func newCompiler(c *snapshot.Cluster, me string, view View, now time.Time, opts Options) *compiler {
	k := &compiler{c: c, view: view, now: now, reading: reading{me: me}, asked: map[snapshot.Key]asked{}}
	k.made.ground = &ground{heard: heardIn(&view), opts: opts}
	k.plan = &Plan{L2: L2{Answers: map[netip.Addr]Answer{}, Since: map[netip.Addr]time.Time{}}}
	return k
}

// read finds which addresses may be announced, whatever the protocol.
func (k *compiler) read() {
	k.readNodes()
	k.readPools()
	k.readAdvertisements()
	k.readBGPAdvertisements()
	k.readServices()
}

// compiler holds one compilation.
type compiler struct {
	c       *snapshot.Cluster
	view    View
	now     time.Time
	plan    *Plan
	scratch []int                  // of best
	reading                        // for which node, and of endpoints
	asked   map[snapshot.Key]asked // becomes reading.places
	made
	before []*address // those of the plan before, one for each of this one; nil: there is none
	burden *burden    // nil: nobody has asked
}

// ground is what a plan stands on but for endpoints and time. Once it has been read it
// does not change, and plans share it.
type ground struct {
	heard heard
	opts  Options

	roll       *Roll
	nodes      []node                // sorted by name
	usable     []int                 // nodes that may own something
	someDeaf   bool                  // some node is
	owned      map[netip.Addr]string // see ownerOf
	ownedOrder []netip.Addr          // of all those; nil: nobody has asked
	pools      []pool
	homes      loadbalancer.Homes
	adverts    []advert
	bgp        []bgpAdvert
	peers      []peer
	claims     map[netip.Addr]Claim
	published  map[netip.Addr]pledge // the best in SpeakerStatuses
	preferring bool                  // some advertisement has preferences
	problems   []snapshot.Problem
}

func (k *compiler) problem(about snapshot.Ref, reason, message string) {
	k.plan.Problems = append(k.plan.Problems, snapshot.Problem{Object: about, Reason: reason, Message: message})
}

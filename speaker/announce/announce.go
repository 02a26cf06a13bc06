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

// handOverGrace is how long a node that is no longer eligible for an address answers for
// it at most while its successor has not claimed it yet.
const handOverGrace = 5 * time.Second

// Claim says that Node owns an address. Every take of the address has a higher Epoch.
type Claim struct {
	Epoch int64
	Node  string
}

// ProtocolL2 is v1alpha1.Announcing.Protocol of an address of layer 2.
const ProtocolL2 = "l2"

// ReasonUnheard is that of addresses which the network filters.
const ReasonUnheard = "AddressUnheard"

// AllowAddresses is what to do about a network that drops what nodes answer for addresses.
const AllowAddresses = "allow the nodes the addresses of the pool there (port security, allowed address pairs, ARP inspection)"

// MaxCount bounds the counters in received messages: epochs, and the versions of facts,
// which are microseconds since 1970. A claim with the highest possible epoch could never
// be beaten and would stay for ever, also when its node is gone. The bound is a century
// ahead of now, beyond any clock that is roughly right, and grows with time: so a value
// that is accepted now can be exceeded a moment later.
func MaxCount(now time.Time) int64 { return now.AddDate(100, 0, 0).UnixMicro() }

// Beats reports whether c takes precedence over o: the higher epoch wins, and among equal
// epochs the higher node name. The node of the other claim stops answering.
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
	// Routes are on-link destinations in which the interface has no address of its own.
	Routes []netip.Prefix `json:"routes,omitempty"`
	// Gateways are the next hops of routes over this interface.
	Gateways []netip.Addr `json:"gateways,omitempty"`
	Up       bool         `json:"up,omitempty"`
	// Deaf says that the interface is up and no host on its LAN answers.
	Deaf bool `json:"deaf,omitempty"`
}

// Facts is what a node publishes about itself.
type Facts struct {
	// Interfaces. nil: not known yet; empty: the node has none.
	Interfaces []Interface `json:"interfaces,omitempty"`
	// Leaving says that the node's speaker is about to stop.
	Leaving bool `json:"leaving,omitempty"`
	// Drained says that the node itself is being drained; see the function Drained.
	Drained bool `json:"drained,omitempty"`
	// Behind says that the node's kube-proxy may not have written its rules.
	Behind bool `json:"behind,omitempty"`
	// HandsOver are addresses that the node waits to see claimed, each with the claim that
	// it expects; see L2.HandsOver.
	HandsOver map[netip.Addr]Claim `json:"handsOver,omitempty"`
}

// Refusal is why this node must not take an address now: a host on the LAN answers for
// it.
type Refusal struct {
	Node string // whose speaker answers; "": the host is not a node of the cluster
	MAC  string
}

// View is what a speaker knows beyond the cluster's objects. The maps are read
// only.
type View struct {
	// Alive are the members that are believed to be alive, this node included.
	Alive map[string]struct{}
	// Claims are the best claims known from gossip; those in SpeakerStatuses are added.
	Claims map[netip.Addr]Claim
	// Facts by node. For a node without facts its SpeakerStatus is used, and without
	// that it is assumed to have every interface it needs.
	Facts map[string]Facts
	// Refused are the addresses for which a host on the LAN answers.
	Refused map[netip.Addr]Refusal
	// Remembered are addresses of this node's claims that had no Service until now, so
	// that it has not answered for them.
	Remembered map[netip.Addr]struct{}
	// Placed is Answer.Preference of this node's addresses in the last plan, or in the Take
	// by which it has one.
	Placed map[netip.Addr]string
	// HandingOver is since when this node has answered for an address only until its
	// successor does; see Answer.HandOver.
	HandingOver map[netip.Addr]time.Time
	// Cut are addresses of this node whose links were all down. Another node may have
	// taken them, so the LAN is asked before this node answers again.
	Cut map[netip.Addr]struct{}
	// Lost are the addresses that better claims took from this node.
	Lost map[netip.Addr]Loss
	// Since is L2.Since of the last plan. nil: there is none, and present endpoints
	// count as having always been there.
	Since map[netip.Addr]time.Time
	// Orphaned is L2.Orphaned of the last plan; nil: there is none.
	Orphaned map[netip.Addr]time.Time
	// Others is BGP.Others of the last plan; nil: there is none.
	Others map[netip.Addr]Other
	// Unserved are those of Plan.Checks at which kube-proxy answers that it has no
	// endpoint on this node, and since when.
	Unserved map[netip.AddrPort]time.Time
	// NodeIndex of the last plan, which saves reading the Nodes again; nil: there is none.
	NodeIndex *NodeIndex
	// Before is the last plan, if any. Compile reuses it where Alive, Claims and Facts
	// are the same maps as in the View that it was made from.
	Before Made
}

// Options are settings of a speaker.
type Options struct {
	// IgnoreExcludeLabel lets nodes announce that have the label
	// node.kubernetes.io/exclude-from-external-load-balancers.
	IgnoreExcludeLabel bool
	// ExternalIPs announces the addresses in spec.externalIPs of Services that
	// lie in a pool, too.
	ExternalIPs bool
	// Namespace is the only one from which passwords of BGP sessions are read. "": it is
	// not known, and no peer is checked for it.
	Namespace string
}

// Answer is one address that this node answers for.
type Answer struct {
	Services []snapshot.Key
	// Interfaces to answer on, sorted. Empty: the interfaces of this node are not known.
	Interfaces []string
	Epoch      int64
	// Preference is the address's v1alpha1.Announcing.Preference.
	Preference string
	// HandOver names the node that should claim the address next. Until it has, this node
	// keeps answering, for at most handOverGrace if it is no longer eligible.
	HandOver string
	// Awaits says that this node should hand the address over, that no other node can take
	// it now, and that one is about to: it has an endpoint that is starting.
	Awaits bool
}

// Cause says why an address changes hands.
type Cause string

// The causes, which are also the label of quayside_l2_ownership_changes_total.
const (
	First      Cause = "first"      // there was no claim on it
	Died       Cause = "died"       // its owner is dead
	Leaving    Cause = "leaving"    // its owner is shutting down or being drained
	Ineligible Cause = "ineligible" // its owner may not serve it any more
	Returned   Cause = "returned"   // this node owns it and is back on the LAN; the epoch stays
	Preferred  Cause = "preferred"  // preferredNodeSelectors have changed
	Deaf       Cause = "deaf"       // its owner is alive, but cut off from the LAN
)

// Take is one address that this node should claim.
type Take struct {
	Address netip.Addr
	Answer  // as it will be once claimed, and under the preferences of now
	From    string
	Cause   Cause
	// Doubtful says that live nodes have taken the address from this one, so this node's
	// watch may be the one that lags. So the LAN is asked whether the owner still answers.
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
	// Checks are the addresses (healthCheckNodePort) at which this node's kube-proxy is
	// asked whether it has endpoints of a Service that has a ready one on this node.
	Checks map[netip.AddrPort]snapshot.Key
	// NextWake is when this plan changes without a new input; zero: never.
	NextWake time.Time

	reading reading // see StillValid
	made    *made   // see Made
}

// L2 is who answers for which address on layer 2.
type L2 struct {
	// Answers are the addresses this node owns.
	Answers map[netip.Addr]Answer
	// Take are the addresses it should claim, in order of address.
	Take []Take
	// Barred are those that it would claim if no host on the LAN answered for them.
	Barred []Take
	Owners Owners
	// HandsOver are the addresses that this node holds and leaves to another, since it may
	// not serve them any more or another is preferred by now, each with the claim of the node
	// that should have it next. nil: there are none.
	HandsOver map[netip.Addr]Claim
	// Since is since when this node has had an endpoint for each address whose
	// externalTrafficPolicy is Local, whatever announces it; see Settling.
	Since map[netip.Addr]time.Time
	// Orphaned are the addresses that another node should take, though this one could, each
	// since when; see stepIn. nil: there are none, or the API server is heard.
	Orphaned map[netip.Addr]time.Time
	// Claims are the best ones known, from the view and from SpeakerStatuses.
	Claims map[netip.Addr]Claim
	// Watch are the nodes whose addresses this one would take over, those with the most
	// of them first, at most maxWatch. Their deaths are to be detected quickly.
	Watch []string
}

// Compile decides for node me. If me is "", it decides for no node, and the plan has only
// the Problems that are the same on every node.
func Compile(c *snapshot.Cluster, me string, view View, now time.Time, opts Options) *Plan {
	k := newCompiler(c, me, view, now, opts)
	if !k.resume() {
		k.read()
		k.readLayer2()
		k.readClaims()
		k.readBGP()
		k.reading.places = snapshot.Collect(len(k.asked), maps.All(k.asked))
		k.inputs.problems = slices.Clone(k.plan.Problems)
	}
	k.plan.L2.Claims = k.claims
	k.plan.L2.Owners.nodes = k.nodes
	k.decide()
	k.plan.L2.Owners.addresses = k.addresses
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
	k.made.inputs = &inputs{viewMaps: mapsOf(&view), opts: opts}
	k.plan = &Plan{L2: L2{Answers: map[netip.Addr]Answer{}, Since: map[netip.Addr]time.Time{}}, Checks: map[netip.AddrPort]snapshot.Key{}}
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

// compiler is the state of one compilation.
type compiler struct {
	c       *snapshot.Cluster
	view    View
	now     time.Time
	plan    *Plan
	scratch []int // of best
	reading
	asked map[snapshot.Key]asked // becomes reading.places
	made
	before  []*address // addresses of the last plan, by the same index; nil: there is none
	changed []int      // the addresses to judge, by index, sorted
	moved   []int      // the holdings whose endpoints are others, by index, sorted
	loads   *loads     // nil: not computed yet
}

// inputs is what a plan was computed from, apart from endpoints and the time. It does not
// change once it has been read, and plans share it.
type inputs struct {
	viewMaps viewMaps
	opts     Options

	allNodes   *NodeIndex
	nodes      []node                // sorted by name
	usable     []int                 // nodes that may own something, see keepUsable
	fit        int                   // how many of them are the least unfit
	someDeaf   bool                  // some node has a deaf interface
	owned      map[netip.Addr]string // see ownerOf
	ownedOrder []netip.Addr          // of owned and allNodes, sorted; nil: not computed yet
	pools      []pool
	homes      loadbalancer.Homes
	adverts    []advert
	bgp        []bgpAdvert
	peers      []peer
	claims     map[netip.Addr]Claim
	published  map[netip.Addr]publishedClaim // the best in SpeakerStatuses
	preferring bool                          // some advertisement has preferences
	problems   []snapshot.Problem
}

func (k *compiler) problem(about snapshot.Ref, reason, message string) {
	k.plan.Problems = append(k.plan.Problems, snapshot.Problem{Object: about, Reason: reason, Message: message})
}

package announce

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/loadbalancer"
	"quayside.io/cluster/snapshot"
)

// peer is a BGPPeer, parsed.
type peer struct {
	Session
	object *v1alpha1.BGPPeer
	nodes  []labels.Selector // none: all
	// shadowed says that this node opens the same session for an older peer.
	shadowed bool
}

func (p *peer) selects(n *node) bool { return anyMatches(p.nodes, n.labels) }

// ends identifies the session of a peer. No two sessions of a node may have the same.
type ends struct {
	peer, source netip.Addr
	port         uint16
	iface, vrf   string
}

func (p *peer) ends() ends { return ends{p.Peer, p.Source, p.Port, p.Interface, p.VRF} }

// Defaults of a session.
const (
	bgpPort     = 179
	defaultHold = 90 * time.Second // RFC 4271 10
	maxTime     = 65535 * time.Second
	maxPassword = 80 // TCP_MD5SIG_MAXKEYLEN
)

// readPeers reads every valid BGPPeer, the oldest first. Invalid ones are reported, and so
// are those whose session an older one has already.
func (k *compiler) readPeers() (peers []peer) {
	me, known := k.nodeIndex[k.me]
	same := map[ends][]int{}
	for _, o := range byAge(k.c.BGPPeers.Sorted()) {
		p, err := k.readPeer(o)
		if err != nil {
			k.problem(snapshot.RefOf(o), "InvalidPeer", err.Error()+": no session is opened")
			continue
		}
		for _, i := range same[p.ends()] {
			older := &peers[i]
			p.shadowed = p.shadowed || known && older.selects(&k.nodes[me]) && p.selects(&k.nodes[me])
			if at := slices.IndexFunc(k.nodes, func(n node) bool { return older.selects(&n) && p.selects(&n) }); at >= 0 {
				k.problem(snapshot.RefOf(o), "DuplicatePeer", fmt.Sprintf("on node %s it means the same session as the older BGPPeer %s: only that one is opened", k.nodes[at].name, older.Name))
			}
		}
		same[p.ends()] = append(same[p.ends()], len(peers))
		peers = append(peers, p)
	}
	return peers
}

// readPeer parses a BGPPeer.
func (k *compiler) readPeer(o *v1alpha1.BGPPeer) (p peer, err error) {
	spec := &o.Spec
	p = peer{object: o, Session: Session{
		Name: o.Name, Interface: spec.Interface, Port: uint16(cmp.Or(spec.Port, bgpPort)), VRF: spec.VRFName,
		ASN: uint32(cmp.Or(spec.LocalASN, spec.MyASN)), PeerASN: uint32(spec.ASN),
		Connect: durationOf(spec.ConnectTime), Keepalive: durationOf(spec.KeepaliveTime),
		Password: spec.Password, PasswordSecret: spec.PasswordSecret.Name,
		MultiHop: spec.EBGPMultiHop, TTLSecurity: spec.TTLSecurity, Passive: spec.PassiveMode, GracefulRestart: spec.EnableGracefulRestart,
	}}
	if err := p.check(spec); err != nil {
		return p, err
	}
	if p.nodes, err = parseSelectors(spec.NodeSelectors); err != nil {
		return p, fmt.Errorf("spec.nodeSelectors: %w", err)
	}
	p.readTimes(spec)
	p.readAddresses(spec)
	p.Kinship = map[string]Kinship{"internal": Internal, "external": External}[spec.DynamicASN]
	if p.RouterID, _ = netip.ParseAddr(spec.RouterID); !p.RouterID.IsValid() {
		p.RouterID = k.routerID()
	}
	p.BFD = k.readBFD(o)
	k.tellElsewhere(o)
	return p, nil
}

// tellElsewhere reports a peer whose passwordSecret names another namespace than the one
// from which passwords are read.
func (k *compiler) tellElsewhere(o *v1alpha1.BGPPeer) {
	named, ours := o.Spec.PasswordSecret, k.opts.Namespace
	if named.Name == "" || named.Namespace == "" || ours == "" || named.Namespace == ours {
		return
	}
	k.problem(snapshot.RefOf(o), "SecretElsewhere", fmt.Sprintf("spec.passwordSecret names Secret %s in namespace %q, but passwords are read in namespace %q only: the Secret of that name there is used; copy it there and leave out passwordSecret.namespace", named.Name, named.Namespace, ours))
}

// readAddresses parses the addresses, which check has validated.
func (p *peer) readAddresses(spec *v1alpha1.BGPPeerSpec) {
	p.Peer, _ = netip.ParseAddr(spec.Address)
	p.Source, _ = netip.ParseAddr(spec.SrcAddress)
	p.Peer, p.Source = p.Peer.Unmap(), p.Source.Unmap()
	// An unnumbered session runs between link-local addresses and carries both families.
	p.IPv4 = spec.DualStackAddressFamily || !p.Peer.IsValid() || p.Peer.Is4()
	p.IPv6 = spec.DualStackAddressFamily || !p.Peer.IsValid() || p.Peer.Is6()
}

// readTimes sets the hold time: three times the keepalive time where only that is set.
func (p *peer) readTimes(spec *v1alpha1.BGPPeerSpec) {
	switch {
	case spec.HoldTime != nil:
		p.Hold = spec.HoldTime.Duration
	case p.Keepalive > 0:
		p.Hold = min(max(3*p.Keepalive, 3*time.Second), maxTime)
	default:
		p.Hold = defaultHold
	}
}

// check applies the rules of the CRD again: objects may come from files, or may have been
// admitted by an older CRD.
func (p *peer) check(spec *v1alpha1.BGPPeerSpec) error {
	isASN := func(n int64) bool { return n >= 0 && n <= math.MaxUint32 }
	isAddr := func(text string) bool { _, err := netip.ParseAddr(text); return err == nil }
	peer, _ := netip.ParseAddr(spec.Address)
	source, _ := netip.ParseAddr(spec.SrcAddress)
	router, _ := netip.ParseAddr(spec.RouterID)
	hold := durationOf(spec.HoldTime)
	for _, rule := range []struct {
		broken bool
		why    string
	}{
		{!isASN(spec.MyASN) || spec.MyASN == 0 || !isASN(spec.ASN) || !isASN(spec.LocalASN), "an AS number is from 1 to 4294967295"},
		{(spec.ASN == 0) == (spec.DynamicASN == ""), "set one of peerASN and dynamicASN"},
		{spec.DynamicASN != "" && spec.DynamicASN != "internal" && spec.DynamicASN != "external", "dynamicASN is internal or external"},
		{(spec.Address == "") == (spec.Interface == ""), "set one of peerAddress and interface"},
		{spec.Address != "" && !isAddr(spec.Address), fmt.Sprintf("peerAddress: %.80q is no IP address", spec.Address)},
		{len(spec.Interface) > 15 || strings.ContainsAny(spec.Interface, "/% \t\n"), fmt.Sprintf("interface: %.80q is no name of an interface", spec.Interface)},
		{spec.Interface != "" && (spec.SrcAddress != "" || spec.EBGPMultiHop), "an unnumbered session runs between the link-local addresses of one link: it has neither sourceAddress nor ebgpMultiHop"},
		{peer.Is6() && peer.IsLinkLocalUnicast() && peer.Zone() == "", "a link-local peerAddress needs a zone, such as fe80::1%eth0"},
		{spec.SrcAddress != "" && !isAddr(spec.SrcAddress), fmt.Sprintf("sourceAddress: %.80q is no IP address", spec.SrcAddress)},
		{source.IsValid() && peer.IsValid() && source.Unmap().Is4() != peer.Unmap().Is4(), "sourceAddress and peerAddress are of different families"},
		{spec.RouterID != "" && (!router.Is4() || router.IsUnspecified()), fmt.Sprintf("routerID: %.80q does not have the form of an IPv4 address", spec.RouterID)},
		{spec.Port < 0 || spec.Port > math.MaxUint16, "peerPort is from 1 to 65535"},
		{hold != 0 && (hold < 3*time.Second || hold > maxTime), "holdTime is 0s or from 3s to 65535s"},
		{p.Keepalive < 0 || p.Keepalive > maxTime || spec.HoldTime != nil && p.Keepalive > hold, "keepaliveTime is no longer than holdTime"},
		{p.Connect < 0 || p.Connect > maxTime, "connectTime is from 1s to 65535s"},
		{p.Password != "" && p.PasswordSecret != "", "set password or passwordSecret, not both"},
		{len(p.Password) > maxPassword, "password is at most 80 bytes"},
		{p.MultiHop && p.TTLSecurity, "ttlSecurity accepts direct neighbours only: it cannot be combined with ebgpMultiHop"},
	} {
		if rule.broken {
			return fmt.Errorf("spec: %s", rule.why)
		}
	}
	return nil
}

func durationOf(d *metav1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return d.Duration
}

// routerID is this node's first IPv4 address, or else a hash of its name.
func (k *compiler) routerID() netip.Addr {
	if n, exists := k.c.Nodes.Get(nodeKey(k.me)); exists {
		for a := range loadbalancer.NodeAddresses(n) {
			if a.Is4() {
				return a
			}
		}
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(k.me))
	var id [4]byte
	binary.BigEndian.PutUint32(id[:], max(1, h.Sum32()))
	return netip.AddrFrom4(id)
}

// readBFD reads the BFDProfile of a peer. If the profile does not exist, the session runs
// without BFD, and only detects later that the peer is gone.
func (k *compiler) readBFD(o *v1alpha1.BGPPeer) *BFD {
	if o.Spec.BFDProfile == "" {
		return nil
	}
	profile, exists := k.c.BFDProfiles.Get(snapshot.Key{Name: o.Spec.BFDProfile})
	if !exists {
		k.problem(snapshot.RefOf(o), "BFDProfileNotFound", fmt.Sprintf("spec.bfdProfile names %q, which does not exist: the session runs without BFD", o.Spec.BFDProfile))
		return nil
	}
	spec := &profile.Spec
	if spec.EchoMode != nil && *spec.EchoMode {
		k.problem(snapshot.RefOf(profile), "EchoUnsupported", "spec.echoMode: echo packets are not sent; the session detects by control packets alone")
	}
	millis := func(n *uint32) time.Duration { return time.Duration(valueOf(n)) * time.Millisecond }
	small := func(n *uint32) uint8 { return uint8(min(valueOf(n), math.MaxUint8)) }
	return &BFD{
		Profile: profile.Name, Receive: millis(spec.ReceiveInterval), Transmit: millis(spec.TransmitInterval),
		Multiplier: small(spec.DetectMultiplier), MinimumTTL: small(spec.MinimumTTL),
		Passive: spec.PassiveMode != nil && *spec.PassiveMode,
	}
}

func valueOf(n *uint32) uint32 {
	if n == nil {
		return 0
	}
	return *n
}

// meet reports whether any node sends the routes of a to p.
func (k *compiler) meet(a *bgpAdvert, p *peer) bool {
	return a.reaches(p) && slices.ContainsFunc(k.nodes, func(n node) bool { return anyMatches(a.nodes, n.labels) && p.selects(&n) })
}

// tellUnheard reports the advertisements whose routes are sent to no peer.
func (k *compiler) tellUnheard(peers []peer) {
	for i := range k.bgp {
		a := &k.bgp[i]
		if len(k.nodes) > 0 && !slices.ContainsFunc(peers, func(p peer) bool { return k.meet(a, &p) }) {
			k.problem(snapshot.RefOf(a.BGPAdvertisement), "NoPeer", "no node that it selects has a session with a BGPPeer that it selects: its routes reach nobody")
		}
	}
}

// tellConflicts reports the advertisements that give a prefix other attributes than an
// older one does, for the same peer and the same node.
func (k *compiler) tellConflicts(peers []peer) {
	conflicts := map[[2]int]string{}
	for i := range k.bgp {
		for j := range i {
			if what := conflict(k.bgp[j].attributes, k.bgp[i].attributes); what != "" && slices.ContainsFunc(peers, func(p peer) bool {
				return k.meetBoth(&k.bgp[i], &k.bgp[j], &p)
			}) {
				conflicts[[2]int{j, i}] = what
			}
		}
	}
	if len(conflicts) == 0 {
		return
	}
	makers := map[netip.Prefix][]int{}
	for _, h := range k.holdings {
		for n, a := range h.bgp {
			p := h.prefixes[n]
			for _, b := range makers[p] {
				pair := [2]int{min(a, b), max(a, b)}
				if what := conflicts[pair]; what != "" {
					delete(conflicts, pair) // one prefix is enough to see it
					k.problem(snapshot.RefOf(k.bgp[pair[1]].BGPAdvertisement), "ConflictingAdvertisements",
						fmt.Sprintf("it announces %s with %s of the older BGPAdvertisement %s, which counts", p, what, k.bgp[pair[0]].Name))
				}
			}
			makers[p] = union(makers[p], []int{a})
		}
	}
}

func (k *compiler) meetBoth(a, b *bgpAdvert, p *peer) bool {
	return a.reaches(p) && b.reaches(p) && slices.ContainsFunc(k.nodes, func(n node) bool {
		return anyMatches(a.nodes, n.labels) && anyMatches(b.nodes, n.labels) && p.selects(&n)
	})
}

// conflict names the attribute in which a younger advertisement contradicts an older one.
func conflict(older, younger *Attributes) string {
	differ := func(a, b uint32) bool { return a != 0 && b != 0 && a != b }
	switch {
	case differ(older.LocalPref, younger.LocalPref):
		return fmt.Sprintf("localPref %d, against %d", younger.LocalPref, older.LocalPref)
	case differ(uint32(older.Prepend), uint32(younger.Prepend)):
		return fmt.Sprintf("asPathPrepend %d, against %d", younger.Prepend, older.Prepend)
	}
	return ""
}

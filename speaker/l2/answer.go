package l2

import (
	"encoding/binary"
	"net/netip"
	"sync/atomic"
)

// mac is an Ethernet address.
type mac [6]byte

// tables are the addresses answered on one interface. They never change once
// published.
type tables struct {
	v4 map[[4]byte]struct{}
	v6 map[[16]byte]struct{}
	// near4 and near6 are other hosts, whose answers to us are signs of life.
	near4 map[[4]byte]struct{}
	near6 map[[16]byte]struct{}
}

// answerer turns a question into its answer. It is what stands between the
// socket's read and its write, so it neither locks nor allocates.
type answerer struct {
	self   mac
	tables atomic.Pointer[tables]
}

func newAnswerer(self mac) *answerer {
	a := &answerer{self: self}
	a.tables.Store(&tables{})
	return a
}

// reading is what a frame was.
type reading struct {
	reply    int        // length of the answer in out; 0: none
	asked    bool       // a well-formed question about an address of ours
	claimant mac        // who claims an address of ours
	claimed  netip.Addr // that address; invalid: none
	answer   bool       // it says so to us, who have asked
	sign     bool       // another host has answered us
}

// Offsets in an Ethernet frame that carries ARP, RFC 826.
const (
	ethLen     = 14
	arpLen     = ethLen + 28
	arpOp      = ethLen + 6
	arpSHA     = ethLen + 8
	arpSPA     = ethLen + 14
	arpTHA     = ethLen + 18
	arpTPA     = ethLen + 24
	arpRequest = 1
	arpReply   = 2
)

// arpHeader is what every ARP frame for IPv4 over Ethernet begins with, from
// the EtherType to the address lengths.
const arpHeader = "\x08\x06\x00\x01\x08\x00\x06\x04"

// arp answers frame into out, which holds at least arpLen bytes.
func (a *answerer) arp(frame, out []byte) (v reading) {
	if len(frame) < arpLen || string(frame[12:20]) != arpHeader {
		return v
	}
	sender, op := mac(frame[arpSHA:arpSPA]), binary.BigEndian.Uint16(frame[arpOp:])
	if sender == a.self || !unicast(sender) || op != arpRequest && op != arpReply {
		return v // our own frame come back, or nonsense
	}
	t := a.tables.Load()
	spa := [4]byte(frame[arpSPA:arpTHA])
	if has(t.v4, spa) {
		v.claimant, v.claimed = sender, netip.AddrFrom4(spa)
		v.answer = op == arpReply && mac(frame[0:6]) == a.self
		return v
	}
	if op == arpReply {
		v.sign = has(t.near4, spa) && mac(frame[0:6]) == a.self
		return v
	}
	tpa := [4]byte(frame[arpTPA:arpLen])
	if !has(t.v4, tpa) || !a.meant(frame) {
		return v
	}
	v.asked = true
	out = out[:arpLen]
	copy(out[0:6], sender[:])
	copy(out[6:12], a.self[:])
	copy(out[12:20], arpHeader)
	binary.BigEndian.PutUint16(out[arpOp:], arpReply)
	copy(out[arpSHA:], a.self[:])
	copy(out[arpSPA:], tpa[:])
	copy(out[arpTHA:], frame[arpSHA:arpTHA]) // its MAC and address, 0.0.0.0 in a probe
	v.reply = arpLen
	return v
}

// meant reports whether the frame was sent to us or to everybody: a switch
// floods other people's unicast questions, which are not ours to answer.
func (a *answerer) meant(frame []byte) bool {
	to := mac(frame[0:6])
	return to == a.self || to == mac{0xff, 0xff, 0xff, 0xff, 0xff, 0xff} || to[0] == 0x33 && to[1] == 0x33
}

func unicast(m mac) bool { return m[0]&1 == 0 && m != mac{} }

func has[K comparable](m map[K]struct{}, k K) bool {
	_, ok := m[k]
	return ok
}

// Offsets in an Ethernet frame that carries neighbour discovery, RFC 4861 4.3
// and 4.4.
const (
	ip6Len     = ethLen + 40
	ip6Payload = ethLen + 4
	ip6Next    = ethLen + 6
	ip6Hops    = ethLen + 7
	ip6Src     = ethLen + 8
	ip6Dst     = ethLen + 24
	ndType     = ip6Len
	ndCode     = ip6Len + 1
	ndSum      = ip6Len + 2
	ndFlags    = ip6Len + 4
	ndTarget   = ip6Len + 8
	ndOptions  = ip6Len + 24
	naLen      = ndOptions + 8 // with the target link-layer address

	solicitation  = 135
	advertisement = 136
	icmpv6        = 58

	flagSolicited = 0x40
	flagOverride  = 0x20

	optSourceLink = 1
	optTargetLink = 2
)

// ndp answers frame into out, which holds at least naLen bytes.
func (a *answerer) ndp(frame, out []byte) (v reading) {
	frame, ok := validND(frame)
	if !ok {
		return v
	}
	sender := linkOf(frame)
	if sender == a.self || mac(frame[6:12]) == a.self || !unicast(sender) {
		return v
	}
	target := [16]byte(frame[ndTarget:ndOptions])
	t := a.tables.Load()
	answer := frame[ndType] == advertisement && frame[ndFlags]&flagSolicited != 0 && mac(frame[0:6]) == a.self
	if !has(t.v6, target) {
		v.sign = answer && has(t.near6, target)
		return v
	}
	if frame[ndType] == advertisement {
		v.claimant, v.claimed, v.answer = sender, netip.AddrFrom16(target), answer
		return v
	}
	src := [16]byte(frame[ip6Src:ip6Dst])
	probing := src == [16]byte{} // duplicate address detection
	if !a.meant(frame) || !validSolicitation(frame, probing) {
		return v
	}
	v.asked = true
	v.reply = a.advertise(out, target, sender, src, probing)
	return v
}

// advertise writes the answer to a solicitation. Its source is the target
// itself, as if the address stood on the interface: a link-local source may
// not exist, or not have passed its own detection yet.
func (a *answerer) advertise(out []byte, target [16]byte, asker mac, src [16]byte, probing bool) int {
	out = out[:naLen]
	clear(out)
	flags := byte(flagOverride | flagSolicited)
	if probing {
		// The asker has no address to answer to: answer all nodes, RFC 4861 7.2.4.
		flags = flagOverride
		asker = mac{0x33, 0x33, 0, 0, 0, 1}
		src = [16]byte{0xff, 2, 15: 1}
	}
	copy(out[0:6], asker[:])
	copy(out[6:12], a.self[:])
	out[12], out[13] = 0x86, 0xdd
	out[ethLen] = 0x60
	binary.BigEndian.PutUint16(out[ip6Payload:], naLen-ip6Len)
	out[ip6Next], out[ip6Hops] = icmpv6, 255
	copy(out[ip6Src:], target[:])
	copy(out[ip6Dst:], src[:])
	out[ndType] = advertisement
	out[ndFlags] = flags
	copy(out[ndTarget:], target[:])
	out[ndOptions], out[ndOptions+1] = optTargetLink, 1
	copy(out[ndOptions+2:], a.self[:])
	binary.BigEndian.PutUint16(out[ndSum:], ^sum(out))
	return naLen
}

// validND checks all that RFC 4861 7.1 asks of both messages, and returns the
// frame without the padding of short Ethernet frames.
func validND(frame []byte) ([]byte, bool) {
	if len(frame) < ndOptions || frame[12] != 0x86 || frame[13] != 0xdd || frame[ethLen]>>4 != 6 {
		return nil, false
	}
	end := ip6Len + int(binary.BigEndian.Uint16(frame[ip6Payload:]))
	if end < ndOptions || end > len(frame) {
		return nil, false
	}
	frame = frame[:end]
	if frame[ip6Next] != icmpv6 || frame[ip6Hops] != 255 || frame[ndCode] != 0 {
		return nil, false
	}
	if t := frame[ndType]; t != solicitation && t != advertisement || frame[ndTarget] == 0xff {
		return nil, false
	}
	return frame, validOptions(frame) && sum(frame) == 0xffff
}

// validOptions finds options that have no length or none of an Ethernet's; what
// else options may be is not ours to judge.
func validOptions(frame []byte) bool {
	for o := frame[ndOptions:]; len(o) > 0; {
		if len(o) < 8 || o[1] == 0 || int(o[1])*8 > len(o) {
			return false
		}
		if (o[0] == optSourceLink || o[0] == optTargetLink) && o[1] != 1 {
			return false
		}
		o = o[int(o[1])*8:]
	}
	return true
}

// linkOption is the link-layer address that a valid frame tells: the asker's in
// a solicitation, the target's in an advertisement.
func linkOption(frame []byte) (m mac, told bool) {
	kind := byte(optSourceLink)
	if frame[ndType] == advertisement {
		kind = optTargetLink
	}
	for o := frame[ndOptions:]; len(o) > 0; o = o[int(o[1])*8:] {
		if o[0] == kind {
			return mac(o[2:8]), true
		}
	}
	return m, false
}

// linkOf is who a valid frame is from. A bond that balances sends from the MAC
// of any of its ports, and a bridge that repeats from its own; what the frame
// tells is where answers go, and what members have published.
func linkOf(frame []byte) mac {
	if m, told := linkOption(frame); told {
		return m
	}
	return mac(frame[6:12])
}

// validSolicitation checks what depends on the source: one that probes has no
// address, so it asks the group and gives no link-layer address.
func validSolicitation(frame []byte, probing bool) bool {
	if frame[ip6Src] == 0xff {
		return false
	}
	if !probing {
		return true
	}
	group := [13]byte{0xff, 2, 11: 1, 12: 0xff}
	if [13]byte(frame[ip6Dst:ip6Dst+13]) != group {
		return false
	}
	_, told := linkOption(frame)
	return !told
}

// sum is the Internet checksum of an ICMPv6 message in frame with its pseudo
// header; 0xffff over a correct message.
func sum(frame []byte) uint16 {
	s := uint32(len(frame)-ip6Len) + icmpv6
	b := frame[ip6Src:]
	for ; len(b) >= 2; b = b[2:] {
		s += uint32(b[0])<<8 | uint32(b[1])
	}
	if len(b) == 1 {
		s += uint32(b[0]) << 8
	}
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

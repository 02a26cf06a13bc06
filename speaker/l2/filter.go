package l2

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"golang.org/x/net/bpf"
)

// span is an inclusive range of the last 32 bits of addresses.
type span struct{ lo, hi uint32 }

// maxSpans bounds the filter: its jumps reach 255 instructions.
const maxSpans = 32

// spansOf covers the addresses of one family with few spans: neighbours merge,
// and while there are too many, so do those with the smallest gap.
func spansOf[K [4]byte | [16]byte](addresses map[K]struct{}) []span {
	points := make([]uint32, 0, len(addresses))
	for a := range addresses {
		points = append(points, lastWord(a))
	}
	slices.Sort(points)
	var spans []span
	for _, p := range points {
		if n := len(spans); n > 0 && p-spans[n-1].hi <= 1 {
			spans[n-1].hi = p
		} else {
			spans = append(spans, span{p, p})
		}
	}
	if len(spans) <= maxSpans {
		return spans
	}
	return widen(spans)
}

// widen keeps the maxSpans-1 widest gaps.
func widen(spans []span) []span {
	gaps := make([]uint32, 0, len(spans)-1)
	for i := 1; i < len(spans); i++ {
		gaps = append(gaps, spans[i].lo-spans[i-1].hi)
	}
	slices.Sort(gaps)
	limit := gaps[len(gaps)-maxSpans+1] // gaps below this are bridged
	out := spans[:1:1]
	for _, s := range spans[1:] {
		last := &out[len(out)-1]
		if gap := s.lo - last.hi; gap < limit || len(out) == maxSpans {
			last.hi = s.hi
		} else {
			out = append(out, s)
		}
	}
	return out
}

func lastWord[K [4]byte | [16]byte](a K) uint32 {
	switch a := any(a).(type) {
	case [16]byte:
		return binary.BigEndian.Uint32(a[12:])
	case [4]byte:
		return binary.BigEndian.Uint32(a[:])
	}
	return 0
}

// Packet types of packet(7): frames that were meant for another host, which a
// promiscuous interface delivers, and our own.
const pktOtherHost, pktOutgoing = 3, 4

// filter is arpFilter or ndpFilter: the program of a socket on the interface
// with this index. bpf's only error is a program that cannot be encoded, which
// depends on spans alone and maxSpans rules out; the caller still reports it.
type filter func(index int, spans, near []span) ([]bpf.RawInstruction, error)

// arpFilter passes ARP frames whose target or sender lies in spans, and replies whose
// sender lies in near.
func arpFilter(index int, spans, near []span) ([]bpf.RawInstruction, error) {
	p := prologue(index)
	p = append(p, inSpans(arpTPA, spans)...)
	p = append(p, inSpans(arpSPA, spans)...)
	if len(near) > 0 {
		p = append(p,
			bpf.LoadAbsolute{Off: arpOp, Size: 2},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: arpReply, SkipTrue: 1},
			bpf.RetConstant{Val: 0},
		)
		p = append(p, inSpans(arpSPA, near)...)
	}
	return bpf.Assemble(append(p, bpf.RetConstant{Val: 0}))
}

// ndpFilter passes solicitations and advertisements whose target ends in spans, and
// advertisements whose target ends in near.
func ndpFilter(index int, spans, near []span) ([]bpf.RawInstruction, error) {
	p := prologue(index)
	p = append(p,
		bpf.LoadAbsolute{Off: ip6Next, Size: 2}, // and the hop limit
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: icmpv6<<8 | 255, SkipTrue: 1},
		bpf.RetConstant{Val: 0},
		bpf.LoadAbsolute{Off: ndType, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: solicitation, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: advertisement, SkipTrue: 1},
		bpf.RetConstant{Val: 0},
	)
	p = append(p, inSpans(ndTarget+12, spans)...)
	if len(near) > 0 {
		p = append(p,
			bpf.LoadAbsolute{Off: ndType, Size: 1},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: advertisement, SkipTrue: 1},
			bpf.RetConstant{Val: 0},
		)
		p = append(p, inSpans(ndTarget+12, near)...)
	}
	return bpf.Assemble(append(p, bpf.RetConstant{Val: 0}))
}

// prologue drops our own frames, those of other hosts, and those that came to
// the interface for another one on top of it: a socket on the parent of a VLAN
// hears the VLAN's frames too, without the tag, and must not answer them.
func prologue(index int) []bpf.Instruction {
	return []bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtType},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: pktOutgoing, SkipTrue: 3},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: pktOtherHost, SkipTrue: 2},
		bpf.LoadExtension{Num: bpf.ExtInterfaceIndex},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(index), SkipTrue: 1},
		bpf.RetConstant{Val: 0},
	}
}

// inSpans accepts the frame if the word at off lies in one of spans, and goes
// on behind itself if not.
func inSpans(off uint32, spans []span) []bpf.Instruction {
	p := []bpf.Instruction{bpf.LoadAbsolute{Off: off, Size: 4}}
	for i, s := range spans {
		toAccept := uint8(2*(len(spans)-i) - 1) // behind the rest, and the jump over accept
		p = append(p,
			bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: s.lo, SkipFalse: 1},
			bpf.JumpIf{Cond: bpf.JumpLessOrEqual, Val: s.hi, SkipTrue: toAccept},
		)
	}
	return append(p, bpf.Jump{Skip: 1}, bpf.RetConstant{Val: 0xffff})
}

// spansOfAddrs is spansOf for a mixed list, of one family.
func spansOfAddrs(list []netip.Addr, is4 bool) []span {
	v4, v6 := map[[4]byte]struct{}{}, map[[16]byte]struct{}{}
	for _, a := range list {
		if a.Is4() {
			v4[a.As4()] = struct{}{}
		} else {
			v6[a.As16()] = struct{}{}
		}
	}
	if is4 {
		return spansOf(v4)
	}
	return spansOf(v6)
}

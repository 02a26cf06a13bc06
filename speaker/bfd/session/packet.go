package session

import (
	"encoding/binary"
	"math"
	"time"
)

// PacketLength is the length in bytes of every packet that is sent.
const PacketLength = 24

const version = 1

// Bits of the second byte, below the state.
const (
	flagPoll = 1 << (5 - iota)
	flagFinal
	flagIndependent // of the control plane; ours is not, and who is does not matter here
	flagAuthenticated
	flagDemand
	flagMultipoint
)

// Packet is a BFD control packet (RFC 5880 4.1). Intervals are whole
// microseconds up to 2^32-1 of them.
type Packet struct {
	Diag        Diag
	State       State
	Poll, Final bool
	// Demand says that the sender is in demand mode: once both ends are up, it
	// does not want to hear from this one periodically.
	Demand bool
	// Multiplier times an interval is the detection time; not zero.
	Multiplier                           uint8
	MyDiscriminator, YourDiscriminator   uint32
	DesiredMinTx, RequiredMinRx, MinEcho time.Duration
}

// Malformed says why a packet is none, in a word fit for a label; "": it is one.
type Malformed string

// What makes a packet invalid (RFC 5880 6.8.6, in its order).
const (
	BadVersion       Malformed = "version"
	BadLength        Malformed = "length"
	BadMultiplier    Malformed = "multiplier"
	BadMultipoint    Malformed = "multipoint"
	BadDiscriminator Malformed = "discriminator" // the sender's own is zero
	BadState         Malformed = "state"         // it is up with somebody whom it does not name
	Authenticated    Malformed = "authenticated" // there is no authentication here
)

// Append writes the packet behind b. It allocates nothing if b has room for
// PacketLength bytes.
func (p *Packet) Append(b []byte) []byte {
	flags := byte(p.State) << 6
	for _, f := range [...]struct {
		set bool
		bit byte
	}{{p.Poll, flagPoll}, {p.Final, flagFinal}, {p.Demand, flagDemand}} {
		if f.set {
			flags |= f.bit
		}
	}
	b = append(b, version<<5|byte(p.Diag)&0x1f, flags, p.Multiplier, PacketLength)
	b = binary.BigEndian.AppendUint32(b, p.MyDiscriminator)
	b = binary.BigEndian.AppendUint32(b, p.YourDiscriminator)
	b = binary.BigEndian.AppendUint32(b, microseconds(p.DesiredMinTx))
	b = binary.BigEndian.AppendUint32(b, microseconds(p.RequiredMinRx))
	return binary.BigEndian.AppendUint32(b, microseconds(p.MinEcho))
}

// Parse reads the payload of a datagram, which may be longer than the packet.
func Parse(b []byte) (Packet, Malformed) {
	switch {
	case len(b) < PacketLength:
		return Packet{}, BadLength
	case b[0]>>5 != version:
		return Packet{}, BadVersion
	case b[3] < PacketLength || int(b[3]) > len(b):
		return Packet{}, BadLength
	}
	p := Packet{
		Diag: Diag(b[0] & 0x1f), State: State(b[1] >> 6),
		Poll: b[1]&flagPoll != 0, Final: b[1]&flagFinal != 0, Demand: b[1]&flagDemand != 0,
		Multiplier:        b[2],
		MyDiscriminator:   binary.BigEndian.Uint32(b[4:]),
		YourDiscriminator: binary.BigEndian.Uint32(b[8:]),
		DesiredMinTx:      duration(b[12:]),
		RequiredMinRx:     duration(b[16:]),
		MinEcho:           duration(b[20:]),
	}
	switch {
	case p.Multiplier == 0:
		return Packet{}, BadMultiplier
	case b[1]&flagMultipoint != 0:
		return Packet{}, BadMultipoint
	case p.MyDiscriminator == 0:
		return Packet{}, BadDiscriminator
	case p.YourDiscriminator == 0 && p.State != Down && p.State != AdminDown:
		return Packet{}, BadState
	case b[1]&flagAuthenticated != 0:
		return Packet{}, Authenticated
	}
	return p, ""
}

func microseconds(d time.Duration) uint32 {
	return uint32(min(max(0, d.Microseconds()), math.MaxUint32))
}

func duration(b []byte) time.Duration {
	return time.Duration(binary.BigEndian.Uint32(b)) * time.Microsecond
}

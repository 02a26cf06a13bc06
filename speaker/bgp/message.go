package bgp

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"quayside.io/speaker/bgp/fsm"
)

const (
	headerLength = 19
	maxMessage   = 4096 // RFC 4271 4.1; we do not offer RFC 8654
	asTrans      = 23456
)

// malformed is a message that earns a NOTIFICATION.
type malformed struct {
	fsm.Notification
	why string
}

func (m *malformed) Error() string { return m.Notification.String() + ": " + m.why }

// message is one that was framed; its body is valid until the next is read.
type message struct {
	kind uint8
	body []byte
}

// framer cuts messages out of a stream. Its buffer is all the memory it uses.
type framer struct{ from *bufio.Reader }

func newFramer(from io.Reader) *framer {
	return &framer{from: bufio.NewReaderSize(from, maxMessage)}
}

// next returns the next message. A *malformed error is the peer's fault; any
// other is the connection's end.
func (f *framer) next() (message, error) {
	if f.from.Buffered() == 0 {
		// Nothing may stay in the buffer but what Peek returns.
		if _, err := f.from.Peek(1); err != nil {
			return message{}, err
		}
	}
	header, err := f.from.Peek(headerLength)
	if err != nil {
		return message{}, cutShort(err)
	}
	length, kind := int(binary.BigEndian.Uint16(header[16:])), header[18]
	if err := checkHeader(header[:16], length, kind); err != nil {
		return message{}, err
	}
	whole, err := f.from.Peek(length)
	if err != nil {
		return message{}, cutShort(err)
	}
	if _, err := f.from.Discard(length); err != nil {
		return message{}, err
	}
	return message{kind: kind, body: whole[headerLength:]}, nil
}

func cutShort(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// checkHeader applies RFC 4271 6.1.
func checkHeader(marker []byte, length int, kind uint8) error {
	bad := func(sub uint8, data []byte, format string, args ...any) error {
		return &malformed{fsm.Notification{Code: fsm.HeaderError, Subcode: sub, Data: data}, fmt.Sprintf(format, args...)}
	}
	for _, b := range marker {
		if b != 0xff {
			return bad(bgp.BGP_ERROR_SUB_CONNECTION_NOT_SYNCHRONIZED, nil, "the marker is not all ones")
		}
	}
	least, most := headerLength, maxMessage
	switch kind {
	case bgp.BGP_MSG_OPEN:
		least = 29
	case bgp.BGP_MSG_UPDATE:
		least = 23
	case bgp.BGP_MSG_NOTIFICATION:
		least = 21
	case bgp.BGP_MSG_KEEPALIVE:
		most = headerLength
	case bgp.BGP_MSG_ROUTE_REFRESH:
		least, most = 23, 23
	default:
		return bad(bgp.BGP_ERROR_SUB_BAD_MESSAGE_TYPE, []byte{kind}, "message type %d", kind)
	}
	if length < least || length > most {
		return bad(bgp.BGP_ERROR_SUB_BAD_MESSAGE_LENGTH, binary.BigEndian.AppendUint16(nil, uint16(length)), "a message of type %d has %d bytes", kind, length)
	}
	return nil
}

// family is one of the two we announce.
type family uint8

const (
	ipv4 family = iota
	ipv6
)

func (f family) String() string { return [...]string{"IPv4 unicast", "IPv6 unicast"}[f] }

func (f family) codec() bgp.RouteFamily {
	return [...]bgp.RouteFamily{bgp.RF_IPv4_UC, bgp.RF_IPv6_UC}[f]
}

func familyOf(addr interface{ Is4() bool }) family {
	if addr.Is4() {
		return ipv4
	}
	return ipv6
}

// checkUpdate checks the framing of an UPDATE's body, and tells an End-of-RIB
// (RFC 4724 section 2) by its length and family. Nothing else of it is read.
func checkUpdate(body []byte) (end family, isEnd bool, err error) {
	bad := func() error {
		return &malformed{fsm.Notification{Code: fsm.UpdateError, Subcode: bgp.BGP_ERROR_SUB_MALFORMED_ATTRIBUTE_LIST}, "lengths of an UPDATE do not add up"}
	}
	withdrawn := int(binary.BigEndian.Uint16(body))
	if 2+withdrawn+2 > len(body) {
		return 0, false, bad()
	}
	rest := body[2+withdrawn:]
	attributes := int(binary.BigEndian.Uint16(rest))
	if 2+attributes > len(rest) {
		return 0, false, bad()
	}
	if len(body) == 4 {
		return ipv4, true, nil
	}
	// MP_UNREACH_NLRI of three bytes and nothing else, with a short or a long length.
	list := rest[2:]
	if withdrawn != 0 || attributes != len(list) || len(list) < 6 || list[1] != byte(bgp.BGP_ATTR_TYPE_MP_UNREACH_NLRI) {
		return 0, false, nil
	}
	head := 3
	if list[0]&byte(bgp.BGP_ATTR_FLAG_EXTENDED_LENGTH) != 0 {
		head = 4
	}
	if len(list) != head+3 {
		return 0, false, nil
	}
	switch afi, safi := binary.BigEndian.Uint16(list[head:]), list[head+2]; {
	case afi == bgp.AFI_IP && safi == bgp.SAFI_UNICAST:
		return ipv4, true, nil
	case afi == bgp.AFI_IP6 && safi == bgp.SAFI_UNICAST:
		return ipv6, true, nil
	}
	return 0, false, nil
}

// open is what we use of a peer's OPEN.
type open struct {
	fsm.Open
	families [2]bool
	as4      bool // RFC 6793
	nextHop6 bool // takes IPv4 routes with an IPv6 next hop (RFC 8950)
	refresh  bool // RFC 2918
}

// guarded runs the codec on bytes of a peer.
func guarded(do func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the codec failed: %v", r)
		}
	}()
	return do()
}

// decodeOpen decodes the body of an OPEN.
func decodeOpen(body []byte) (open, error) {
	o := open{Open: fsm.Open{Version: body[0]}}
	if o.Version != 4 {
		return o, nil // the machine refuses it; nothing else in it means anything
	}
	m := &bgp.BGPOpen{}
	if err := guarded(func() error { return m.DecodeFromBytes(body) }); err != nil {
		return o, &malformed{fsm.Notification{Code: fsm.OpenError}, err.Error()}
	}
	o.ASN, o.Hold = uint32(m.MyAS), m.HoldTime
	if id := m.ID.To4(); id != nil {
		o.ID = binary.BigEndian.Uint32(id)
	}
	multiprotocol := false
	for _, p := range m.OptParams {
		caps, ok := p.(*bgp.OptionParameterCapability)
		if !ok {
			return o, &malformed{fsm.Notification{Code: fsm.OpenError, Subcode: bgp.BGP_ERROR_SUB_UNSUPPORTED_OPTIONAL_PARAMETER}, "an optional parameter that is no capability"}
		}
		length := 0
		for _, c := range caps.Capability {
			// Nor does it mind reading a number from the capability that follows.
			if long, is := c.(*bgp.CapFourOctetASNumber); is && long.CapLen != 4 {
				return o, &malformed{fsm.Notification{Code: fsm.OpenError}, "a long AS number of other than 4 bytes"}
			}
			o.capability(c, &multiprotocol)
			length += c.Len()
		}
		// The codec keeps silent about what it could not decode.
		if length != int(caps.ParamLen) {
			return o, &malformed{fsm.Notification{Code: fsm.OpenError}, "capabilities of wrong length"}
		}
	}
	if !multiprotocol {
		o.families[ipv4] = true
	}
	return o, nil
}

func (o *open) capability(c bgp.ParameterCapabilityInterface, multiprotocol *bool) {
	switch c := c.(type) {
	case *bgp.CapMultiProtocol:
		*multiprotocol = true
		for _, f := range []family{ipv4, ipv6} {
			o.families[f] = o.families[f] || c.CapValue == f.codec()
		}
	case *bgp.CapFourOctetASNumber:
		o.as4, o.ASN = true, c.CapValue
	case *bgp.CapRouteRefresh:
		o.refresh = true
	case *bgp.CapExtendedNexthop:
		for _, t := range c.Tuples {
			if t.NLRIAFI == bgp.AFI_IP && t.NLRISAFI == bgp.SAFI_UNICAST && t.NexthopAFI == bgp.AFI_IP6 {
				o.nextHop6 = true
			}
		}
	case *bgp.CapGracefulRestart:
		o.Restart = true
	}
}

// decodeNotification never fails: two bytes are there, and all may follow.
func decodeNotification(body []byte) fsm.Notification {
	return fsm.Notification{Code: body[0], Subcode: body[1], Data: append([]byte(nil), body[2:]...)}
}

// encode serializes a message of ours.
func encode(m *bgp.BGPMessage) ([]byte, error) {
	var b []byte
	err := guarded(func() (err error) {
		b, err = m.Serialize()
		return err
	})
	return b, err
}

// encodeOpen is our OPEN. restarting says that we have just begun (RFC 4724).
func encodeOpen(s *Settings, restarting bool) ([]byte, error) {
	var caps []bgp.ParameterCapabilityInterface
	var restart []*bgp.CapGracefulRestartTuple
	for _, f := range []family{ipv4, ipv6} {
		if s.announces(f) {
			caps = append(caps, bgp.NewCapMultiProtocol(f.codec()))
			restart = append(restart, bgp.NewCapGracefulRestartTuple(f.codec(), true))
		}
	}
	caps = append(caps, bgp.NewCapRouteRefresh(), bgp.NewCapFourOctetASNumber(s.ASN))
	if s.IPv4 && s.Peer.Addr().Is6() {
		caps = append(caps, bgp.NewCapExtendedNexthop([]*bgp.CapExtendedNexthopTuple{
			bgp.NewCapExtendedNexthopTuple(bgp.RF_IPv4_UC, bgp.AFI_IP6)}))
	}
	if s.Restart > 0 {
		caps = append(caps, bgp.NewCapGracefulRestart(restarting, false, uint16(s.Restart.Seconds()), restart))
	}
	asn := uint16(asTrans)
	if s.ASN <= 0xffff {
		asn = uint16(s.ASN)
	}
	return encode(bgp.NewBGPOpenMessage(asn, uint16(s.Hold.Seconds()), net.IP(s.RouterID.AsSlice()).String(),
		[]bgp.OptionParameterInterface{bgp.NewOptionParameterCapability(caps)}))
}

func encodeNotification(n fsm.Notification) ([]byte, error) {
	return encode(bgp.NewBGPNotificationMessage(n.Code, n.Subcode, n.Data))
}

package l2

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"

	"github.com/mdlayher/arp"
	"github.com/mdlayher/ndp"
)

// gratuitous returns the frames that announce to a LAN that address lives at self.
// Some hosts accept only the request form of ARP, some only the reply.
func gratuitous(self mac, address netip.Addr) ([][]byte, error) {
	if address.Is4() {
		request, err := arpFrame(arp.OperationRequest, self, address, mac{}, address)
		if err != nil {
			return nil, err
		}
		reply, err := arpFrame(arp.OperationReply, self, address, broadcast(), address)
		return [][]byte{request, reply}, err
	}
	frame, err := ndFrame(self, address, netip.IPv6LinkLocalAllNodes(), here(self, address))
	return [][]byte{frame}, err
}

// here says unasked that address lives at self.
func here(self mac, address netip.Addr) ndp.Message {
	return &ndp.NeighborAdvertisement{
		Override:      true,
		TargetAddress: address,
		Options:       []ndp.Option{&ndp.LinkLayerAddress{Direction: ndp.Target, Addr: self[:]}},
	}
}

// question returns the frame that asks a LAN who has address. From nobody (the
// unspecified address) it says nothing about the asker: an ARP probe of
// RFC 5227, or a solicitation as in duplicate address detection.
func question(self mac, from, address netip.Addr) ([]byte, error) {
	if address.Is4() {
		return arpFrame(arp.OperationRequest, self, from, mac{}, address)
	}
	group, err := ndp.SolicitedNodeMulticast(address)
	if err != nil {
		return nil, fmt.Errorf("group of %s: %w", address, err)
	}
	ask := &ndp.NeighborSolicitation{TargetAddress: address}
	if !from.IsUnspecified() {
		ask.Options = []ndp.Option{&ndp.LinkLayerAddress{Direction: ndp.Source, Addr: self[:]}}
	}
	return ndFrame(self, from, group, ask)
}

func broadcast() mac { return mac{0xff, 0xff, 0xff, 0xff, 0xff, 0xff} }

func arpFrame(op arp.Operation, self mac, from netip.Addr, to mac, target netip.Addr) ([]byte, error) {
	p, err := arp.NewPacket(op, net.HardwareAddr(self[:]), from, net.HardwareAddr(to[:]), target)
	if err != nil {
		return nil, fmt.Errorf("ARP for %s: %w", target, err)
	}
	body, err := p.MarshalBinary()
	if err != nil {
		return nil, fmt.Errorf("ARP for %s: %w", target, err)
	}
	all := broadcast()
	return append(ethHeader(all, self, 0x0806), body...), nil
}

func ndFrame(self mac, from, to netip.Addr, m ndp.Message) ([]byte, error) {
	body, err := ndp.MarshalMessageChecksum(m, from, to)
	if err != nil {
		return nil, fmt.Errorf("neighbour discovery from %s to %s: %w", from, to, err)
	}
	b := ethHeader(groupMAC(to), self, 0x86dd)
	b = append(b, 0x60, 0, 0, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(len(body)))
	b = append(b, icmpv6, 255)
	b = append(b, from.AsSlice()...)
	b = append(b, to.AsSlice()...)
	return append(b, body...), nil
}

func ethHeader(to, from mac, etherType uint16) []byte {
	b := append(to[:], from[:]...)
	return binary.BigEndian.AppendUint16(b, etherType)
}

// groupMAC is where Ethernet carries an IPv6 group, RFC 2464 7.
func groupMAC(group netip.Addr) mac {
	a := group.As16()
	return mac{0x33, 0x33, a[12], a[13], a[14], a[15]}
}

package members

import (
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"quayside.io/speaker/announce"
)

// A node says in its kindLeaving messages to whom it hands addresses over: a uvarint with
// their number, and for each the claim that it expects, as in kindClaims, and the name of
// the node that is to make it. Older speakers ignore these bytes and send none.

// appendHandsOver appends the hand-overs that fit a packet. The others are sent when the
// first have been claimed.
func (m *message) appendHandsOver(b []byte) []byte {
	var list []byte
	room, count := maxMessage-overhead(m.node)-binary.MaxVarintLen16-len(b), uint64(0)
	for _, a := range slices.SortedFunc(maps.Keys(m.handsOver), netip.Addr.Compare) {
		to := m.handsOver[a]
		one := append(appendClaim(nil, claimed{a, to.Epoch}), byte(len(to.Node)))
		if one = append(one, to.Node...); len(list)+len(one) > room || count == maxHandsOver {
			break
		}
		list = append(list, one...)
		count++
	}
	return append(binary.AppendUvarint(b, count), list...)
}

// parseHandsOver reads the hand-overs, if there are any.
func (m *message) parseHandsOver(b []byte, most uint64) error {
	if len(b) == 0 {
		return nil
	}
	count, n := binary.Uvarint(b)
	if n <= 0 {
		return errTruncated
	}
	if count > maxHandsOver {
		return fmt.Errorf("%s hands %d addresses over at once; at most %d are believed", m.node, count, maxHandsOver)
	}
	if count > 0 {
		m.handsOver = make(map[netip.Addr]announce.Claim, count)
	}
	for b = b[n:]; count > 0; count-- {
		c, rest, err := m.parseClaim(b, most)
		if err != nil {
			return err
		}
		to, err := parseName(rest)
		if err != nil {
			return err
		}
		if b = rest[1+len(to):]; c.epoch > 0 {
			m.handsOver[c.address] = announce.Claim{Epoch: c.epoch, Node: to}
		}
	}
	return nil
}

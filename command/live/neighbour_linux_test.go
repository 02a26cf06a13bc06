package live

import (
	"encoding/binary"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"quayside.io/command/explain"
	"quayside.io/test/netns"
)

func TestReadNeighbour(t *testing.T) {
	attribute := func(kind uint16, value []byte) []byte {
		b := binary.NativeEndian.AppendUint16(nil, uint16(syscall.SizeofRtAttr+len(value)))
		b = append(binary.NativeEndian.AppendUint16(b, kind), value...)
		return append(b, make([]byte, -len(b)&(syscall.RTA_ALIGNTO-1))...)
	}
	message := binary.NativeEndian.AppendUint32([]byte{syscall.AF_INET, 0, 0, 0}, 7)
	message = append(binary.NativeEndian.AppendUint16(message, 2), 0, 1)
	message = append(message, attribute(ndaDst, []byte{192, 0, 2, 7})...)
	message = append(message, attribute(ndaLLAddr, []byte{2, 0, 0, 0, 0, 9})...) // is filled up
	message = append(message, attribute(77, []byte{1})...)
	ip, link, mac, nud := readNeighbour(message)
	if ip != netip.MustParseAddr("192.0.2.7") || link != 7 || mac.String() != "02:00:00:00:00:09" || nud != 2 {
		t.Errorf("%s on %d is %s, state %d", ip, link, mac, nud)
	}
	for n := range message { // whatever the kernel cuts short
		readNeighbour(message[:n])
	}
}

// What the kernel says of neighbours is what `ip neighbour` says.
func TestNeighbours(t *testing.T) {
	if !netns.Inside(t, time.Minute) {
		return
	}
	netns.Sh(t, "ip link add lan type veth peer name far && ip addr add 192.0.2.1/24 dev lan && ip link set lan up && ip link set far up")
	netns.Sh(t, "ip neighbour add 192.0.2.2 lladdr 02:00:00:00:00:02 dev lan nud reachable && ip neighbour add 192.0.2.3 lladdr 02:00:00:00:00:03 dev lan nud permanent")
	compared := 0
	for line := range strings.Lines(netns.Sh(t, "ip -4 neighbour")) { // "192.0.2.2 dev lan lladdr 02:00:00:00:00:02 REACHABLE"
		words := strings.Fields(line)
		if len(words) < 6 || words[3] != "lladdr" {
			continue
		}
		says, state, onLink := neighbour(netip.MustParseAddr(words[0]))
		compared++
		if !onLink || state != explain.Works || !strings.HasPrefix(says, words[4]+" on "+words[2]) {
			t.Errorf("%q is said of\n%s", says, line)
		}
	}
	if compared != 2 {
		t.Errorf("%d neighbours were compared, want 2", compared)
	}
}

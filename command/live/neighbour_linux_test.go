package live

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"quayside.io/command/explain"
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

// What the kernel says of the neighbours of this machine is what `ip neighbour` says.
func TestNeighboursOfThisMachine(t *testing.T) {
	table, err := exec.CommandContext(t.Context(), "ip", "-4", "neighbour").Output()
	if err != nil {
		t.Skip("there is no command ip: ", err)
	}
	compared := 0
	for line := range bytes.Lines(table) { // "192.0.2.1 dev eth0 lladdr 02:00:00:00:00:01 REACHABLE"
		words := strings.Fields(string(line))
		if len(words) < 6 || words[3] != "lladdr" {
			continue
		}
		ip := netip.MustParseAddr(words[0])
		says, state, onLink := neighbour(ip)
		if _, err := net.InterfaceByName(words[2]); err != nil || !onLink {
			continue
		}
		compared++
		if state != explain.Works || !strings.HasPrefix(says, words[4]+" on "+words[2]) {
			t.Errorf("%q is said of\n%s", says, line)
		}
	}
	if compared == 0 {
		t.Skip("this machine has no neighbour")
	}
}

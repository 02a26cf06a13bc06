package proxyheader

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"net/netip"
	"strconv"
)

// MaxSize is the longest header that is read. One of version 1 has 107 bytes at most;
// one of version 2 may carry certificates and other things that nobody here asks for.
const MaxSize = 4 << 10

// What Parse says of bytes that are no whole header.
var (
	ErrNone      = errors.New("there is no PROXY header")
	ErrShort     = errors.New("the PROXY header has not come in full")
	ErrMalformed = errors.New("the PROXY header is malformed")
)

// Header is what a PROXY header says.
type Header struct {
	// From is the client, and To the address that it connected to. Both are invalid
	// where the header tells of no client: the sender speaks for itself, or the client
	// has no address of IP.
	From, To netip.AddrPort
}

const (
	start1, start2 = "PROXY ", "\r\n\r\n\x00\r\nQUIT\n"
	// most1 is the longest header of version 1.
	most1 = 107
	// fixed2 is the length of what every header of version 2 has.
	fixed2 = len(start2) + 4
)

// Parse reads the header at the start of b, and returns its length. ErrShort says that
// more bytes are needed to tell.
func Parse(b []byte) (h Header, n int, err error) {
	switch {
	case beginsWith(b, start1):
		return parse1(b)
	case beginsWith(b, start2):
		return parse2(b)
	}
	return Header{}, 0, ErrNone
}

// beginsWith reports whether b may begin with start, as far as it has come.
func beginsWith(b []byte, start string) bool {
	n := min(len(b), len(start))
	return string(b[:n]) == start[:n]
}

// parse1 reads a line such as "PROXY TCP4 192.0.2.1 192.0.2.2 1234 443".
func parse1(b []byte) (Header, int, error) {
	end := bytes.Index(b[:min(len(b), most1)], []byte("\r\n"))
	switch {
	case end < 0 && len(b) >= most1:
		return Header{}, 0, ErrMalformed
	case end < 0:
		return Header{}, 0, ErrShort
	case end < len(start1):
		return Header{}, 0, ErrMalformed
	}
	line, n := b[len(start1):end], end+2
	if rest, unknown := bytes.CutPrefix(line, []byte("UNKNOWN")); unknown && (len(rest) == 0 || rest[0] == ' ') {
		return Header{}, n, nil // what follows is to be ignored
	}
	words := bytes.Split(line, []byte{' '})
	if len(words) != 5 {
		return Header{}, 0, ErrMalformed
	}
	four := string(words[0]) == "TCP4"
	from, ok1 := parseEnd(words[1], words[3], four)
	to, ok2 := parseEnd(words[2], words[4], four)
	if !ok1 || !ok2 || !four && string(words[0]) != "TCP6" {
		return Header{}, 0, ErrMalformed
	}
	return Header{from, to}, n, nil
}

// parseEnd reads an address of one family, and a port.
func parseEnd(addr, port []byte, four bool) (netip.AddrPort, bool) {
	a, err := netip.ParseAddr(string(addr))
	if err != nil || a.Zone() != "" || a.Is4() != four {
		return netip.AddrPort{}, false
	}
	p, err := strconv.ParseUint(string(port), 10, 16)
	if err != nil || len(port) > 1 && port[0] == '0' {
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(a.Unmap(), uint16(p)), true
}

// parse2 reads the binary form.
func parse2(b []byte) (Header, int, error) {
	if len(b) < fixed2 {
		return Header{}, 0, ErrShort
	}
	version, command := b[len(start2)]>>4, b[len(start2)]&15
	family, transport := b[len(start2)+1]>>4, b[len(start2)+1]&15
	n := fixed2 + int(binary.BigEndian.Uint16(b[len(start2)+2:]))
	switch {
	case version != 2 || command > 1 || family > 3 || transport > 2 || n > MaxSize:
		return Header{}, 0, ErrMalformed
	case len(b) < n:
		return Header{}, 0, ErrShort
	}
	if command == 0 || family == 0 || transport == 0 {
		return Header{}, n, nil // what it says otherwise is to be ignored
	}
	size, ports := []int{0, 4, 16, 108}[family], 4 // of an address, and of both ports
	if family == 3 {
		ports = 0
	}
	rest := b[fixed2:n]
	if len(rest) < 2*size+ports || !soundExtras(b[:n], fixed2+2*size+ports) {
		return Header{}, 0, ErrMalformed
	}
	if family == 3 || transport != 1 {
		return Header{}, n, nil
	}
	from, _ := netip.AddrFromSlice(rest[:size])
	to, _ := netip.AddrFromSlice(rest[size : 2*size])
	at := rest[2*size:]
	return Header{
		netip.AddrPortFrom(from.Unmap(), binary.BigEndian.Uint16(at)),
		netip.AddrPortFrom(to.Unmap(), binary.BigEndian.Uint16(at[2:])),
	}, n, nil
}

// checksum is the type of the extra that has a CRC32c of the whole header.
const checksum = 0x03

// soundExtras reports whether the extras of a header, from an offset on, fill it to its
// end, and whether a checksum among them is right.
func soundExtras(header []byte, at int) bool {
	for at < len(header) {
		if len(header) < at+3 {
			return false
		}
		value := at + 3
		end := value + int(binary.BigEndian.Uint16(header[at+1:]))
		if len(header) < end {
			return false
		}
		if header[at] == checksum && (end-value != 4 || binary.BigEndian.Uint32(header[value:]) != sumWithout(header, value)) {
			return false
		}
		at = end
	}
	return true
}

// sumWithout is the checksum of a header with zeros where it stands.
func sumWithout(header []byte, at int) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	sum := crc32.Update(0, table, header[:at])
	sum = crc32.Update(sum, table, make([]byte, 4))
	return crc32.Update(sum, table, header[at+4:])
}

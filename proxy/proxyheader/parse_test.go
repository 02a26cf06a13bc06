package proxyheader

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/pires/go-proxyproto"
)

// second returns a header of version 2.
func second(command, family byte, rest string) string {
	b := append([]byte(start2), command, family)
	return string(binary.BigEndian.AppendUint16(b, uint16(len(rest)))) + rest
}

const (
	ends4 = "\xc0\x00\x02\x01\xc0\x00\x02\x02\x04\xd2\x01\xbb"
	extra = "\x20\x00\x02ab"
)

func summed(header string) string {
	b := []byte(header + "\x03\x00\x04\x00\x00\x00\x00")
	binary.BigEndian.PutUint16(b[len(start2)+2:], uint16(len(b)-fixed2))
	binary.BigEndian.PutUint32(b[len(b)-4:], sumWithout(b, len(b)-4))
	return string(b)
}

func TestParse(t *testing.T) {
	const from, to = "192.0.2.1:1234", "192.0.2.2:443"
	six := strings.Repeat("\x20\x01", 8)
	for _, c := range []struct {
		b        string
		from, to string // empty: of nobody
		err      error
	}{
		{"PROXY TCP4 192.0.2.1 192.0.2.2 1234 443\r\n", from, to, nil},
		{"PROXY TCP6 2001:db8::1 2001:db8::2 0 65535\r\n", "[2001:db8::1]:0", "[2001:db8::2]:65535", nil},
		{"PROXY TCP6 ::ffff:192.0.2.1 2001:db8::2 1234 443\r\n", from, "[2001:db8::2]:443", nil},
		{"PROXY UNKNOWN\r\n", "", "", nil},
		{"PROXY UNKNOWN ffff::1 anything 0 0\r\n", "", "", nil},
		{"PROXY UNKNOWNS\r\n", "", "", ErrMalformed},
		{"PROXY TCP4 192.0.2.1 192.0.2.2 1234 443\n", "", "", ErrShort},
		{"PROXY TCP4 192.0.2.1 192.0.2.2 1234 443 \r\n", "", "", ErrMalformed},
		{"PROXY TCP4  192.0.2.1 192.0.2.2 1234 443\r\n", "", "", ErrMalformed},
		{"PROXY TCP4 192.0.2.1 192.0.2.2 1234\r\n", "", "", ErrMalformed},
		{"PROXY TCP4 192.0.2.1 192.0.2.2 01234 443\r\n", "", "", ErrMalformed},
		{"PROXY TCP4 192.0.2.1 192.0.2.2 +1234 443\r\n", "", "", ErrMalformed},
		{"PROXY TCP4 192.0.2.1 192.0.2.2 1234 65536\r\n", "", "", ErrMalformed},
		{"PROXY TCP4 192.0.02.1 192.0.2.2 1234 443\r\n", "", "", ErrMalformed},
		{"PROXY TCP4 2001:db8::1 192.0.2.2 1234 443\r\n", "", "", ErrMalformed},
		{"PROXY TCP6 192.0.2.1 192.0.2.2 1234 443\r\n", "", "", ErrMalformed},
		{"PROXY TCP6 fe80::1%eth0 2001:db8::2 1234 443\r\n", "", "", ErrMalformed},
		{"PROXY UDP4 192.0.2.1 192.0.2.2 1234 443\r\n", "", "", ErrMalformed},
		{"PROXY \r\n", "", "", ErrMalformed},
		{"PROXY " + strings.Repeat("x", 120), "", "", ErrMalformed},
		{"PRO", "", "", ErrShort},
		{"", "", "", ErrShort},
		{"PRI * HTTP/2.0", "", "", ErrNone},
		{"GET / HTTP/1.1\r\n", "", "", ErrNone},
		{"\x16\x03\x01", "", "", ErrNone},
		{second(0x21, 0x11, ends4), from, to, nil},
		{second(0x21, 0x11, ends4+extra), from, to, nil},
		{summed(second(0x21, 0x11, ends4)), from, to, nil},
		{second(0x21, 0x11, ends4+"\x03\x00\x04sums"), "", "", ErrMalformed},
		{second(0x21, 0x11, ends4+"\x20\x00\x05ab"), "", "", ErrMalformed},
		{second(0x21, 0x11, ends4+"\x20"), "", "", ErrMalformed},
		{second(0x21, 0x11, ends4[1:]), "", "", ErrMalformed},
		{second(0x21, 0x11, ends4)[:20], "", "", ErrShort},
		{second(0x21, 0x21, six+six+"\x04\xd2\x01\xbb"), "[2001:2001:2001:2001:2001:2001:2001:2001]:1234", "[2001:2001:2001:2001:2001:2001:2001:2001]:443", nil},
		{second(0x20, 0x11, ends4), "", "", nil},
		{second(0x20, 0x00, ""), "", "", nil},
		{second(0x21, 0x00, ""), "", "", nil},
		{second(0x21, 0x12, ends4), "", "", nil},
		{second(0x21, 0x31, strings.Repeat("\x00", 216)), "", "", nil},
		{second(0x21, 0x41, ends4), "", "", ErrMalformed},
		{second(0x21, 0x13, ends4), "", "", ErrMalformed},
		{second(0x22, 0x11, ends4), "", "", ErrMalformed},
		{second(0x11, 0x11, ends4), "", "", ErrMalformed},
		{second(0x21, 0x11, strings.Repeat("x", MaxSize)), "", "", ErrMalformed},
	} {
		h, n, err := Parse([]byte(c.b + "GET"))
		if c.err == ErrShort {
			h, n, err = Parse([]byte(c.b))
		}
		var want Header
		if c.from != "" {
			want = Header{netip.MustParseAddrPort(c.from), netip.MustParseAddrPort(c.to)}
		}
		if h != want || !errors.Is(err, c.err) || err == nil && n != len(c.b) {
			t.Errorf("%q: %v, %d bytes, %v; want %v, %v", c.b, h, n, err, want, c.err)
		}
	}
}

// What is accepted, another implementation reads alike; what has come in part is
// neither accepted nor refused before its time.
func FuzzParse(f *testing.F) {
	for _, b := range []string{
		"PROXY TCP4 192.0.2.1 192.0.2.2 1234 443\r\nGET", "PROXY TCP6 2001:db8::1 ::ffff:192.0.2.2 1 2\r\n", "PROXY UNKNOWN x\r\n", "PROXY \r\n",
		second(0x21, 0x11, ends4), summed(second(0x21, 0x11, ends4+extra)), second(0x20, 0x31, ""), second(0x21, 0x31, strings.Repeat("x", 216)),
	} {
		f.Add([]byte(b))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, n, err := Parse(b)
		if err != nil {
			if n != 0 || h != (Header{}) {
				t.Fatalf("%q: %v, and yet %v of %d bytes", b, err, h, n)
			}
			return
		}
		if n > len(b) || n > MaxSize {
			t.Fatalf("%q: %d bytes", b, n)
		}
		for i := range n {
			if _, _, err := Parse(b[:i]); !errors.Is(err, ErrShort) {
				t.Fatalf("%q is accepted, and of its first %d bytes it is said: %v", b[:n], i, err)
			}
		}
		if !h.From.IsValid() {
			return
		}
		in := bufio.NewReader(bytes.NewReader(b[:n]))
		theirs, err := proxyproto.Read(in)
		if err != nil {
			t.Fatalf("%q: another implementation says %v", b[:n], err)
		}
		from, ok := theirs.SourceAddr.(*net.TCPAddr)
		to, ok2 := theirs.DestinationAddr.(*net.TCPAddr)
		if !ok || !ok2 || unmapped(from) != h.From || unmapped(to) != h.To || in.Buffered() > 0 {
			t.Fatalf("%q: %v, another implementation says %v to %v", b[:n], h, theirs.SourceAddr, theirs.DestinationAddr)
		}
	})
}

func unmapped(a *net.TCPAddr) netip.AddrPort {
	at := a.AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}

package bgp

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

func TestEndOfRIBIsToldByItsLengthAndFamily(t *testing.T) {
	for _, c := range []struct {
		name string
		body []byte
		f    family
		end  bool
		bad  bool
	}{
		{"IPv4", []byte{0, 0, 0, 0}, ipv4, true, false},
		{"IPv6", []byte{0, 0, 0, 6, 0x80, 15, 3, 0, 2, 1}, ipv6, true, false},
		{"IPv6, long length", []byte{0, 0, 0, 7, 0x90, 15, 0, 3, 0, 2, 1}, ipv6, true, false},
		{"IPv4 as an attribute", []byte{0, 0, 0, 6, 0x80, 15, 3, 0, 1, 1}, ipv4, true, false},
		{"VPNv4", []byte{0, 0, 0, 6, 0x80, 15, 3, 0, 1, 128}, 0, false, false},
		{"a withdrawal", []byte{0, 4, 24, 1, 2, 3, 0, 0}, 0, false, false},
		{"an IPv6 withdrawal", []byte{0, 0, 0, 8, 0x80, 15, 5, 0, 2, 1, 8, 32}, 0, false, false},
		{"another attribute", []byte{0, 0, 0, 6, 0x80, 14, 3, 0, 2, 1}, 0, false, false},
		{"past the end", []byte{0, 1, 0, 0}, 0, false, true},
		{"attributes past the end", []byte{0, 0, 0, 1}, 0, false, true},
	} {
		f, end, err := checkUpdate(c.body)
		if f != c.f || end != c.end || (err != nil) != c.bad {
			t.Errorf("%s: %v %v %v", c.name, f, end, err)
		}
	}
}

// TestFramesDoNotDependOnPieces: what arrives byte by byte is framed the same.
func TestFramesDoNotDependOnPieces(t *testing.T) {
	stream := bytes.Join([][]byte{rawOpen(90), raw(kindKeepalive), deadlyUpdates()[0], raw(kindUpdate, make([]byte, maxMessage-headerLength)...),
		raw(kindNotification, 6, 2)}, nil)
	for name, from := range map[string]io.Reader{
		"whole": bytes.NewReader(stream), "bytes": iotest.OneByteReader(bytes.NewReader(stream)), "halves": iotest.HalfReader(bytes.NewReader(stream)),
	} {
		f := newFramer(from)
		var again []byte
		for {
			m, err := f.next()
			if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			again = append(again, raw(m.kind, m.body...)...)
		}
		if !bytes.Equal(again, stream) {
			t.Errorf("%s: framed %d bytes of %d", name, len(again), len(stream))
		}
	}
}

func TestFramingAllocatesNothing(t *testing.T) {
	update := deadlyUpdates()[0]
	from := bytes.NewReader(nil)
	f := newFramer(from)
	if n := testing.AllocsPerRun(1000, func() {
		from.Reset(update)
		f.from.Reset(from)
		m, err := f.next()
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := checkUpdate(m.body); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzMessages reads a stream as a session does.
func FuzzMessages(f *testing.F) {
	f.Add(rawOpen(90))
	f.Add(append(rawOpen(0), raw(kindKeepalive)...))
	for _, update := range deadlyUpdates() {
		f.Add(update)
	}
	f.Add(raw(kindOpen, 4, 0xfd, 0xe9, 0, 90, 10, 0, 0, 7, 10, 2, 8, 65, 0, 1, 4, 0, 1, 0, 1))
	f.Add(raw(kindUpdate, 0xff, 0xff, 0, 0))
	f.Add(raw(kindNotification, 6, 2, 200, 'x'))
	f.Add(raw(kindOpen, 4, 0xfd, 0xe9, 0, 90, 10, 0, 0, 7, 4, 2, 2, 65, 200))
	f.Add(raw(kindOpen, 4, 0xfd, 0xe9, 0, 90, 10, 0, 0, 7, 255, 255, 0, 4, 2, 2, 65, 0)) // RFC 9072
	f.Add(raw(5, 0, 1, 0, 1))
	f.Add(raw(9))
	f.Add([]byte{0xff})
	f.Fuzz(func(t *testing.T, stream []byte) {
		framer := newFramer(bytes.NewReader(stream))
		c := &conn{id: 1}
		for {
			m, err := framer.next()
			if err == nil && m.kind == kindUpdate {
				_, _, err = checkUpdate(m.body)
			}
			a := c.arrival(m, err)
			_ = a.Notification.String() + a.Reason
			if err != nil {
				return
			}
		}
	})
}

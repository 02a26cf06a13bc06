package frame

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	// readSize is the size of the read buffer in bytes. The payload of a larger frame is
	// read directly into its destination.
	readSize = 4 << 10
	// tableSize is the size of HPACK's dynamic table in bytes (RFC 7541 section 4.2).
	tableSize = 4 << 10
)

// Fault is a connection error (RFC 9113 section 5.4.1).
type Fault struct {
	Code http2.ErrCode
	Why  string // the debug data of GOAWAY, also logged
}

// Fail returns a Fault.
func Fail(code http2.ErrCode, why string) *Fault { return &Fault{code, why} }

// Error implements error.
func (f *Fault) Error() string { return fmt.Sprintf("%v: %s", f.Code, f.Why) }

// Input reads frames. It is for one goroutine.
type Input struct {
	Reader  *bufio.Reader
	Decoder *hpack.Decoder
	framer  *http2.Framer
	resized bool // the peer has chosen a size of the decoder's table
}

// NewInput returns an Input that reads from r and calls field for each field of a block. No
// name or value may be longer than longest bytes.
func NewInput(r io.Reader, longest int, field func(hpack.HeaderField)) Input {
	return newInput(r, longest, hpack.NewDecoder(tableSize, field))
}

func newInput(r io.Reader, longest int, d *hpack.Decoder) Input {
	d.SetMaxStringLength(longest)
	in := Input{Decoder: d, Reader: bufio.NewReaderSize(r, readSize)}
	in.framer = http2.NewFramer(nil, in.Reader)
	in.framer.SetReuseFrames()
	in.framer.SetMaxReadFrameSize(Size)
	return in
}

// Next reads one frame, which is valid until the next call.
func (in *Input) Next() (head http2.FrameHeader, f http2.Frame, err error) {
	if head, err = in.framer.ReadFrameHeader(); err == nil {
		f, err = in.framer.ReadFrameForHeader(head)
	}
	var stream http2.StreamError
	if errors.As(err, &stream) && head.Type == http2.FrameHeaders {
		// Its fields were not decoded, and nothing after them can be.
		err = Fail(stream.Code, "the padding of a HEADERS frame is too long")
	}
	return head, f, err
}

// Decode unfolds part of a field block, which is not empty; begins says that it is the first.
// After the last, Decoder has to be closed.
func (in *Input) Decode(fragment []byte, begins bool) error {
	for begins && resizes(fragment) { // what changes the table's size stands in front (RFC 7541 section 4.2)
		in.resized = true
		n := integerLength(fragment, 5)
		if n == len(fragment) || !resizes(fragment[n:]) {
			break
		}
		// There may be two, and the decoder takes one for a block while its table has fields.
		if _, err := in.Decoder.Write(fragment[:n]); err != nil {
			return err
		}
		if err := in.Decoder.Close(); err != nil {
			return err
		}
		fragment = fragment[n:]
	}
	_, err := in.Decoder.Write(fragment)
	return err
}

func resizes(block []byte) bool { return len(block) > 0 && block[0]&sizeMask == tableEmpty }

// integerLength returns how many bytes of b an integer takes that begins with the last bits
// of the first one (RFC 7541 section 5.1): all of them where it does not end.
func integerLength(b []byte, bits int) int {
	if mask := byte(1)<<bits - 1; b[0]&mask < mask {
		return 1
	}
	for n := 1; n < len(b); n++ {
		if b[n]&0x80 == 0 {
			return n + 1
		}
	}
	return len(b)
}

// Judge turns an error of Next that concerns the whole connection into a Fault, and returns
// any other error unchanged.
func (in *Input) Judge(err error) error {
	var connection http2.ConnectionError
	switch {
	case errors.As(err, &connection):
		why := "a frame breaks the protocol"
		if detail := in.framer.ErrorDetail(); detail != nil {
			why = detail.Error()
		}
		return Fail(http2.ErrCode(connection), why)
	case errors.Is(err, http2.ErrFrameTooLarge):
		return Fail(http2.ErrCodeFrameSize, "a frame is larger than we allow")
	}
	return err
}

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
	// readSize is how much is read at once at most while frames are small; the rest
	// of a larger one goes where it belongs.
	readSize = 4 << 10
	// tableSize is that of the table by which the other side shortens its fields.
	tableSize = 4 << 10
)

// Fault is why a connection ends that cannot go on: a connection error of RFC 9113
// section 5.4.1.
type Fault struct {
	Code http2.ErrCode
	Why  string // for the other side's log, and ours
}

// Fail makes a Fault.
func Fail(code http2.ErrCode, why string) *Fault { return &Fault{code, why} }

func (f *Fault) Error() string { return fmt.Sprintf("%v: %s", f.Code, f.Why) }

// Input is how frames are read. It belongs to the one goroutine that reads.
type Input struct {
	Reader  *bufio.Reader
	Decoder *hpack.Decoder
	framer  *http2.Framer
}

// NewInput reads from r, and hands over each field of a block, of which none may be
// longer than longest, in bytes.
func NewInput(r io.Reader, longest int, field func(hpack.HeaderField)) Input {
	in := Input{Reader: bufio.NewReaderSize(r, readSize), Decoder: hpack.NewDecoder(tableSize, field)}
	in.framer = http2.NewFramer(nil, in.Reader)
	in.framer.SetReuseFrames()
	in.framer.SetMaxReadFrameSize(Size)
	in.Decoder.SetMaxStringLength(longest)
	return in
}

// Next reads one frame, which is good until the next call.
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

// Judge makes a Fault of what Next says against the whole connection, and returns
// any other error as it is.
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

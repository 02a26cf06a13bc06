package upstream

import (
	"bytes"
	"errors"

	"quayside.io/proxy/exchange"
)

var errChunk = errors.New("a chunk of the response is malformed")

// chunks decodes a chunked body in place, fed with whatever bytes have come. It
// is a state machine because a chunk's head may be cut anywhere.
type chunks struct {
	state chunkState
	left  int64 // bytes of the current chunk still to come
	line  int   // bytes of the current head or trailer line
	digit bool  // the current head has a digit
	extra int   // bytes spent on extensions and trailers in the whole body

	trailer []byte // the lines of the trailer so far, each with its line feed
}

type chunkState uint8

const (
	chunkSize chunkState = iota
	chunkPad
	chunkExtension
	chunkSizeLF
	chunkData
	chunkDataCR
	chunkDataLF
	trailerStart
	trailerLine
	trailerLF
	trailerEndLF
	chunksDone
)

// maxChunkExtra bounds what a body may spend on extensions and trailers.
const maxChunkExtra = 16 << 10

// next takes bytes off the start of b: it returns the data among them that
// comes first, and how many bytes it used up. Empty data with used bytes only
// means that framing was read. After done it uses up nothing.
func (c *chunks) next(b []byte) (data []byte, used int, err error) {
	for used < len(b) && c.state != chunksDone {
		if c.state == chunkData {
			n := int(min(c.left, int64(len(b)-used)))
			data = b[used : used+n]
			if c.left -= int64(n); c.left == 0 {
				c.state = chunkDataCR
			}
			return data, used + n, nil
		}
		if err := c.step(b[used]); err != nil {
			return nil, used, err
		}
		used++
	}
	return nil, used, nil
}

func (c *chunks) done() bool { return c.state == chunksDone }

// step takes one byte of framing.
func (c *chunks) step(b byte) error {
	switch c.state {
	case chunkSize:
		return c.size(b)
	case chunkPad:
		return c.pad(b)
	case chunkExtension:
		if b == '\r' {
			c.state = chunkSizeLF
		} else if err := c.skip(b); err != nil {
			return err
		}
	case chunkSizeLF:
		if b != '\n' {
			return errChunk
		}
		if c.state = chunkData; c.left == 0 {
			c.state = trailerStart
		}
		c.line, c.digit = 0, false
	case chunkDataCR:
		if b != '\r' {
			return errChunk
		}
		c.state = chunkDataLF
	case chunkDataLF:
		if b != '\n' {
			return errChunk
		}
		c.state = chunkSize
	case trailerStart:
		if b == '\r' {
			c.state = trailerEndLF
			return nil
		}
		c.state = trailerLine
		c.trailer = append(c.trailer, b)
		return c.skip(b)
	case trailerLine:
		if b == '\r' {
			c.state = trailerLF
			return nil
		}
		c.trailer = append(c.trailer, b)
		return c.skip(b)
	case trailerLF:
		if b != '\n' {
			return errChunk
		}
		c.trailer = append(c.trailer, b)
		c.state = trailerStart
	case trailerEndLF:
		if b != '\n' {
			return errChunk
		}
		c.state = chunksDone
	}
	return nil
}

// size takes one byte of the head of a chunk.
func (c *chunks) size(b byte) error {
	digit := int64(-1)
	switch {
	case '0' <= b && b <= '9':
		digit = int64(b - '0')
	case 'a' <= b && b <= 'f':
		digit = int64(b-'a') + 10
	case 'A' <= b && b <= 'F':
		digit = int64(b-'A') + 10
	}
	switch {
	case digit >= 0:
		if c.line++; c.line > 15 {
			return errChunk
		}
		c.left, c.digit = c.left<<4|digit, true
	case !c.digit:
		return errChunk
	default:
		return c.pad(b)
	}
	return nil
}

// pad takes one byte behind a size: there may be white space before an extension.
func (c *chunks) pad(b byte) error {
	switch b {
	case '\r':
		c.state = chunkSizeLF
	case ';':
		c.state = chunkExtension
	case ' ', '\t':
		c.state = chunkPad
		return c.skip(b)
	default:
		return errChunk
	}
	return nil
}

// fields puts the trailer into t once all of it has come. Lines that are no
// fields are dropped.
func (c *chunks) fields(t *exchange.Trailer) {
	for line := range bytes.Lines(c.trailer) {
		if name, value, ok := cutField(line[:len(line)-1]); ok {
			t.Add(name, value)
		}
	}
}

// skip passes over one byte of a line. A bare line feed there is how a
// body is cut in two places by two readers.
func (c *chunks) skip(b byte) error {
	if c.extra++; b == '\n' || c.extra > maxChunkExtra {
		return errChunk
	}
	return nil
}

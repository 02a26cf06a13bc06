package upstream

import (
	"bytes"
	"errors"

	"quayside.io/proxy/exchange"
)

// What makes a response head unusable. The texts end up in logs and, because
// they name no address, in the body of the 502.
var (
	errIncomplete  = errors.New("the response head is incomplete")
	errStatusLine  = errors.New("the status line is malformed")
	errFieldLine   = errors.New("a header field is malformed")
	errFolded      = errors.New("a header field is folded over two lines")
	errLength      = errors.New("Content-Length is not a number")
	errTwoLengths  = errors.New("there are two Content-Length fields")
	errCoding      = errors.New("Transfer-Encoding is not chunked alone")
	errBothFramed  = errors.New("there are both Content-Length and Transfer-Encoding")
	errHeadTooLong = errors.New("the response head is too long")
)

// unknown is the length of a body that ends with its connection.
const unknown = -1

// head is the framing of one response, read off its status line and fields.
type head struct {
	status  int
	minor   int   // HTTP/1.minor
	length  int64 // unknown if no Content-Length came
	chunked bool
}

// parseHead reads a response head from the start of b, appends its fields to h
// without copying, and returns its size. errIncomplete asks for more bytes.
//
// It is strict where leniency lets a response be cut in two places by two
// readers: lengths, codings, folded lines, bare carriage returns. A line may
// end in LF alone, as every other client accepts.
func parseHead(b []byte, h *exchange.Header) (head, int, error) {
	hd := head{length: unknown}
	size := headSize(b)
	if size < 0 {
		return hd, 0, errIncomplete
	}
	line, rest := cutLine(b[:size])
	if !hd.parseStatus(line) {
		return hd, 0, errStatusLine
	}
	for {
		line, rest = cutLine(rest)
		if len(line) == 0 {
			break
		}
		if line[0] == ' ' || line[0] == '\t' {
			return hd, 0, errFolded
		}
		name, value, ok := cutField(line)
		if !ok {
			return hd, 0, errFieldLine
		}
		if err := hd.frame(name, value); err != nil {
			return hd, 0, err
		}
		h.AddBorrowed(name, value)
	}
	if hd.chunked && hd.length != unknown {
		return hd, 0, errBothFramed
	}
	if hd.chunked && hd.minor == 0 {
		return hd, 0, errCoding
	}
	return hd, size, nil
}

// headSize returns the size of the head at the start of b with its empty line,
// or -1 if the empty line has not come.
func headSize(b []byte) int {
	for at := 0; ; {
		i := bytes.IndexByte(b[at:], '\n')
		if i < 0 {
			return -1
		}
		at += i + 1
		switch {
		case at < len(b) && b[at] == '\n':
			return at + 1
		case at+1 < len(b) && b[at] == '\r' && b[at+1] == '\n':
			return at + 2
		}
	}
}

// cutLine returns the first line without its end, and what follows.
func cutLine(b []byte) (line, rest []byte) {
	i := bytes.IndexByte(b, '\n')
	if i < 0 {
		return nil, nil
	}
	line, rest = b[:i], b[i+1:]
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return line, rest
}

// parseStatus reads "HTTP/1.x NNN reason"; the reason is of no use to anybody. A status that is
// none, from 600 on, is the client's to judge (RFC 9110 section 15).
func (hd *head) parseStatus(line []byte) bool {
	const prefix = "HTTP/1."
	if len(line) < len("HTTP/1.1 200") || string(line[:len(prefix)]) != prefix || line[8] != ' ' {
		return false
	}
	if line[7] != '0' && line[7] != '1' {
		return false
	}
	hd.minor = int(line[7] - '0')
	for _, c := range line[9:12] {
		if c < '0' || c > '9' {
			return false
		}
		hd.status = hd.status*10 + int(c-'0')
	}
	return hd.status >= 100 && (len(line) == 12 || line[12] == ' ')
}

// cutField splits "Name: value" and trims the value. A name is a token; a value
// holds no control character but the tab.
func cutField(line []byte) (name, value []byte, ok bool) {
	i := bytes.IndexByte(line, ':')
	if i <= 0 {
		return nil, nil, false
	}
	name, value = line[:i], exchange.TrimSpace(line[i+1:])
	if !exchange.IsToken(name) {
		return nil, nil, false
	}
	for _, c := range value {
		if c < ' ' && c != '\t' || c == 0x7f {
			return nil, nil, false
		}
	}
	return name, value, true
}

// frame takes the two fields that say where the body ends.
func (hd *head) frame(name, value []byte) error {
	switch len(name) {
	case len("Content-Length"):
		if !exchange.EqualFold(name, "Content-Length") {
			return nil
		}
		if hd.length != unknown {
			return errTwoLengths
		}
		n, ok := parseLength(value)
		if !ok {
			return errLength
		}
		hd.length = n
	case len("Transfer-Encoding"):
		if !exchange.EqualFold(name, "Transfer-Encoding") {
			return nil
		}
		if hd.chunked || !exchange.EqualFold(value, "chunked") {
			return errCoding
		}
		hd.chunked = true
	}
	return nil
}

// parseLength reads a Content-Length: digits only, and not so many that they
// overflow.
func parseLength(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	var n int64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

package filter

import (
	"bytes"
	"io"
	"slices"
	"strings"

	"quayside.io/proxy/exchange"
)

// Substitution replaces texts in the bodies of responses, as nginx's sub_filter does.
type Substitution struct {
	Texts []SubstitutedText
	// Types are the media types of such responses in lower case, beside text/html; "*" is any.
	Types []string
	// Always replaces each text wherever it stands, and not once.
	Always bool
	// LastModified keeps the field of that name, which is of another body.
	LastModified bool
}

// SubstitutedText is what is looked for, in any letter case, and what takes its place. What
// variables bring into that is never taken for more than text of a page.
type SubstitutedText struct{ From, To *Template }

// substitute replaces texts as they pass. What is encoded or a part of something stays.
func substitute(o *Substitution, at Place) func(*exchange.Exchange) {
	return func(ex *exchange.Exchange) {
		r := &ex.Response
		kind := strings.ToLower(string(mediaTypeOf(r)))
		known := kind == "text/html" || slices.Contains(o.Types, kind) || slices.Contains(o.Types, "*")
		if !known || r.Body == nil || r.Length == 0 || slices.ContainsFunc(r.Header.Fields(), func(f exchange.Field) bool { return isAny(f.Name, "Content-Encoding", "Content-Range") }) {
			return
		}
		body := &substituted{ReadCloser: r.Body, always: o.Always}
		for _, text := range o.Texts {
			from := text.From.append(nil, ex, &at, appendAsIs, appendAsIs)
			if from = exchange.AppendLower(nil, from); len(from) > 0 && len(from) <= maxLooked {
				body.texts = append(body.texts, replacing{from, text.To.append(nil, ex, &at, appendAsIs, appendHTML)})
				body.longest = max(body.longest, len(from))
			}
		}
		r.Body, r.Length = body, -1
		changesBytes(&r.Header)
		if !o.LastModified {
			r.Header.Del("Last-Modified")
		}
	}
}

// appendHTML appends b as text of a page or of an attribute.
func appendHTML(dst, b []byte) []byte {
	for _, c := range b {
		switch c {
		case '<':
			dst = append(dst, "&lt;"...)
		case '>':
			dst = append(dst, "&gt;"...)
		case '&':
			dst = append(dst, "&amp;"...)
		case '"':
			dst = append(dst, "&#34;"...)
		case '\'':
			dst = append(dst, "&#39;"...)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// replacing is one text, in lower case, and what takes its place.
type replacing struct{ from, to []byte }

// substituted is a body whose texts are replaced as it is read.
type substituted struct {
	io.ReadCloser
	texts   []replacing // that are still looked for
	longest int
	always  bool

	read  []byte // and not looked at yet
	lower []byte // the same in lower case
	next  []int  // where each text begins in that; -1: nowhere
	ready []byte // to be sent
	err   error  // of the body, once it has ended
}

// maxLooked bounds a text that is looked for, in bytes.
const maxLooked = 4 << 10

// readSize is how much of a body is looked at in one go.
const readSize = 8 << 10

// Read implements io.Reader.
func (s *substituted) Read(p []byte) (int, error) {
	for len(s.ready) == 0 {
		if s.err != nil && len(s.read) == 0 {
			return 0, s.err
		}
		if s.err == nil {
			have := len(s.read)
			s.read = slices.Grow(s.read, readSize)[:have+readSize]
			n, err := s.ReadCloser.Read(s.read[have:])
			s.read, s.err = s.read[:have+n], err
		}
		s.look()
	}
	n := copy(p, s.ready)
	s.ready = s.ready[n:]
	return n, nil
}

// look makes ready what has been read. The end of it may be the beginning of a text, and is
// kept until the rest has come.
func (s *substituted) look() {
	s.ready, s.lower, s.next = s.ready[:0], exchange.AppendLower(s.lower[:0], s.read), s.next[:0]
	for _, t := range s.texts {
		s.next = append(s.next, bytes.Index(s.lower, t.from))
	}
	done := 0
	for {
		i := s.first()
		if i < 0 || s.err == nil && len(s.read)-s.next[i] < s.longest { // one that begins before it may be longer
			break
		}
		t, at := s.texts[i], s.next[i]
		s.ready = append(append(s.ready, s.read[done:at]...), t.to...)
		if done = at + len(t.from); !s.always {
			s.texts, s.next = slices.Delete(s.texts, i, i+1), slices.Delete(s.next, i, i+1)
		}
		s.follow(done)
	}
	keep := 0
	if s.err == nil && len(s.texts) > 0 {
		keep = min(s.longest-1, len(s.read)-done)
	}
	s.ready = append(s.ready, s.read[done:len(s.read)-keep]...)
	s.read = append(s.read[:0], s.read[len(s.read)-keep:]...)
}

// first returns which text begins first, or -1.
func (s *substituted) first() int {
	which := -1
	for i, at := range s.next {
		if at >= 0 && (which < 0 || at < s.next[which]) {
			which = i
		}
	}
	return which
}

// follow looks for the texts that begin before what is done.
func (s *substituted) follow(done int) {
	for i, at := range s.next {
		if at < 0 || at >= done {
			continue
		}
		if s.next[i] = bytes.Index(s.lower[done:], s.texts[i].from); s.next[i] >= 0 {
			s.next[i] += done
		}
	}
}

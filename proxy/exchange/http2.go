package exchange

import "strconv"

// StreamReset is the error of a body whose sender has reset its HTTP/2 stream. A peer to
// which the body is passed on over HTTP/2 gets the same code.
type StreamReset struct {
	Code uint32 // RFC 9113 section 7
}

// Error implements error.
func (r *StreamReset) Error() string {
	return "the stream was reset with error " + strconv.FormatUint(uint64(r.Code), 10)
}

// Informer is a Peer that can be told something ahead of its response.
type Informer interface {
	Peer
	// Inform sends an informational response, of a status below 200 and not 100 or 101.
	// The fields are borrowed until it returns. What there is no room for is not sent.
	Inform(status int, h *Header)
}

// Hints drops what does not belong into 103 (Early Hints) from its fields, and reports
// whether any are left. Only those that browsers act on remain: nobody filters these
// fields as those of a response are.
func (h *Header) Hints() bool {
	h.Keep(func(f Field) bool { return EqualFold(f.Name, "link") || EqualFold(f.Name, "content-security-policy") })
	return len(h.fields) > 0
}

// Waker is a Peer that says when it hangs up. After a Read of the body of its request
// has timed out, another may follow.
type Waker interface {
	Peer
	// WakeWhenGone has a token put into ch, if there is room for one, when Gone
	// becomes true, or at once if it is. Nil takes the channel before it back.
	WakeWhenGone(ch chan<- struct{})
}

package exchange

// Span is what an exchange is called in a trace (W3C Trace Context, level 2). The zero
// value is that of one that nobody records.
type Span struct {
	Trace [16]byte
	// ID names the exchange, and Parent what it is part of; zero: nothing.
	ID, Parent [8]byte
	// Flags are those of the context that the upstream is sent.
	Flags byte
}

// Recorded reports whether somebody wants to be told of the exchange when it has ended.
func (s *Span) Recorded() bool { return s.ID != [8]byte{} }

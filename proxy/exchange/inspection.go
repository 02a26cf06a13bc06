package exchange

// Inspection is what a firewall looks at of one exchange, once it has seen the head of
// the request. One goroutine at a time calls it.
type Inspection interface {
	// Wants is how many bytes of the request's body Body is to be shown; 0: none.
	Wants() int
	// Body judges the request with the beginning of its body; whole says that this is
	// all of it. It is called once, whether there is a body or not.
	Body(beginning []byte, whole bool) Verdict
	// Response judges the head of what an upstream has answered.
	Response(r *Response) Verdict
	// End is called once, when nobody needs it any more.
	End()
}

// Verdict is what becomes of an exchange that was looked at. The zero value lets it
// pass.
type Verdict struct {
	// Status refuses it, if not 0. Hangup ends the client's connection, too.
	Status int
	Hangup bool
}

package exchange

import (
	"net/netip"
	"time"
)

// Upstream is what became of asking endpoints. Whoever forwards fills it in.
type Upstream struct {
	// Name is that of the backend that was asked last: "namespace-service-port".
	Name string
	// Began is when the first endpoint was chosen. Zero: none was asked.
	Began time.Time
	// Waited is how long the request has waited for endpoints: for connections, heads,
	// and pieces of bodies. While a client was sending its body, it waited for both.
	Waited time.Duration
	// Tries are the endpoints asked, in order.
	Tries []Try
}

// Try is one endpoint being asked.
type Try struct {
	Endpoint netip.AddrPort
	// Status is that of the endpoint's answer; 0: none came. Failed is what is said
	// in its place then, 502 to 504; 0: it is not for want of an answer.
	Status, Failed int
	// Connect, Header and Took are the times from the choice of the endpoint until
	// there was a connection (0: there had been one), the head of the answer, and the
	// last that came from it.
	Connect, Header, Took time.Duration
	// Received is how many bytes of the answer's body have come.
	Received int64
}

// Last returns the try that the response is from. There must be one.
func (u *Upstream) Last() *Try { return &u.Tries[len(u.Tries)-1] }

package dispatch

import (
	"errors"
	"net/netip"
	"slices"
	"sync/atomic"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/filter"
	"quayside.io/proxy/route"
)

// What takes connections undecrypted, by the server name that their clients ask for.

// passer is a Forwarder that does so.
type passer interface {
	// PassOn carries a connection until it has ended, behind a PROXY header of a
	// version; 0: none. An error says that the client was not sent anything.
	PassOn(c *exchange.Raw, version int) error
}

// PassesAny reports whether any server name's connections are handed on.
func (d *Dispatcher) PassesAny() bool {
	r := d.routing.Load()
	return r != nil && r.table.PassesAny()
}

// Passes reports whether the connections of a server name are handed on.
func (d *Dispatcher) Passes(serverName string) bool {
	r := d.routing.Load()
	return r != nil && r.table.Passthrough(serverName) != nil
}

// PassOn carries a connection of a server name until it has ended. An error says that
// the client was not sent anything.
func (d *Dispatcher) PassOn(serverName string, c *exchange.Raw) error {
	r := d.routing.Load()
	p := r.table.Passthrough(serverName)
	if p == nil {
		return errors.New("its server name is not one any more whose connections are handed on")
	}
	s := d.metrics.get(seriesKey{p.Owner.Key, p.Service})
	err := r.passOn(p, c)
	s.passed[becameOf(err)].Add(1)
	return err
}

func (r *routing) passOn(p *route.Passthrough, c *exchange.Raw) error {
	client := c.Client.Addr()
	blocked := r.table.Front != nil && slices.ContainsFunc(r.table.Front.BlockCIDRs, func(n netip.Prefix) bool { return n.Contains(client) })
	if blocked || !p.Access.Passes(client) {
		return exchange.ErrDenied
	}
	if p.Closed != "" {
		return errors.New(p.Closed)
	}
	if p.Backend < len(r.backends) {
		if to, ok := r.backends[p.Backend].(passer); ok {
			return to.PassOn(c, p.ProxyHeader)
		}
	}
	return errors.New("this host leads nowhere")
}

// passedOn counts connections that were to be handed on, by what became of them.
type passedOn [3]atomic.Uint64

// becameOf is an index of passedOn.
func becameOf(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, exchange.ErrDenied):
		return 1
	}
	return 2
}

func (p *passedOn) labels() [3]string { return [...]string{"carried", "denied", "failed"} }

// undecrypted refuses requests for a host whose connections are handed on, if they
// came by one that was decrypted here, for another server name. They would reach the
// backend past the TLS that is its own.
func undecrypted() filter.Filter {
	return filter.Filter{Request: func(ex *exchange.Exchange) bool {
		if ex.Request.Handshake == nil {
			return true
		}
		ex.Answer(421, "421 Misdirected Request: TLS for this host ends at its backend, so it cannot be asked over a connection for another\n")
		return false
	}}
}

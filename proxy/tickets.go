package proxy

import (
	"bytes"
	"maps"

	"quayside.io/cluster/snapshot"
	"quayside.io/cluster/tickets"
)

// secretsOf are the Secrets that a table names, and that of the session tickets.
func (p *Proxy) secretsOf(named []snapshot.Key) []snapshot.Key {
	if key := p.options.Tickets; key != (snapshot.Key{}) {
		named = append(named, key)
	}
	return named
}

// seal has TLS sessions sealed by the keys that all proxies share. While there are
// none that can be read, those in force stay: at first ones of our own, which nobody
// else opens.
func (p *Proxy) seal(c *snapshot.Cluster) {
	secret, _ := c.Secrets.Get(p.options.Tickets)
	if secret == nil || secret == p.sealed {
		return
	}
	same := p.sealed != nil && maps.EqualFunc(p.sealed.Data, secret.Data, bytes.Equal)
	p.sealed = secret
	if same {
		return
	}
	keys, err := tickets.Parse(secret.Data)
	if err != nil {
		p.options.Log.Warn("the keys of TLS session tickets are of no use, so those before stay", "secret", p.options.Tickets, "error", err)
		return
	}
	p.server.SetTicketKeys(keys)
}

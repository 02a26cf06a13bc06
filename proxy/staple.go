package proxy

import (
	"cmp"
	"crypto/tls"
	"net/netip"
	"time"

	"quayside.io/proxy/balance"
	"quayside.io/proxy/route"
)

// certificate returns the certificate for a client, with an OCSP response where there is
// one.
func (p *Proxy) certificate(hello *tls.ClientHelloInfo) *tls.Certificate {
	return p.stapler.With(p.dispatch.Certificate(hello))
}

// staple has OCSP responses fetched for the certificates of a table, if it says so.
func (p *Proxy) staple(t *route.Table) {
	on := t.TLS != nil && t.TLS.Staple
	if !on && !p.stapling {
		return
	}
	p.stapling = on
	p.endpoints.staple(on)
	var list []*tls.Certificate
	if on {
		for _, of := range t.AllCertificates() {
			list = append(list, of...)
		}
		list = append(list, t.Certificates("")...)
	}
	p.stapler.Set(list)
}

// refuse says why an address outside is not asked, whatever name leads there.
func (p *Proxy) refuse(a netip.Addr) string {
	switch {
	case a.IsLoopback() && !p.options.AllowLoopback:
		return "loopback addresses are refused"
	case a.IsUnspecified(), a.IsMulticast():
		return "not the address of one endpoint"
	}
	return cmp.Or(balance.RefuseOutside(a), p.endpoints.refuses(a))
}

// staple says whether the names of responders must be judged.
func (e *endpoints) staple(on bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.outside.stapling = on
	e.outside.referNodes()
}

// refuses says why an address is not asked because of what the cluster is. That may
// have to be found out first.
func (e *endpoints) refuses(a netip.Addr) string {
	select {
	case <-e.outside.nodes.refer(true):
	case <-time.After(referPatience):
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.advance(e.options.Source.Snapshot())
	e.outside.bar(e.seen)
	return e.outside.barred.why(a)
}

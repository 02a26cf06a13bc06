package exchange

import (
	"bytes"
	"slices"
)

// Copy returns what is known of e without its bodies, in memory of its own: it stays
// when e is reused.
func (e *Exchange) Copy() *Exchange {
	c := &Exchange{Request: e.Request, Response: e.Response, Upstream: e.Upstream, Span: e.Span}
	c.Upstream.Tries = slices.Clone(e.Upstream.Tries)
	r := &c.Request
	for _, b := range []*[]byte{&r.Method, &r.Host, &r.Target, &r.Path, &r.Routed, &r.Asked.Host, &r.Asked.Target, &r.Asked.Authorization, &r.Asked.Proto, &r.Upgrade, &r.UpgradeKey} {
		*b = bytes.Clone(*b)
	}
	r.Header, r.Body, r.Trailer, r.Peer = e.Request.Header.clone(), nil, Trailer{}, nil
	s := &c.Response
	s.Header, s.Body, s.Trailer, s.Text, s.Upgraded = e.Response.Header.clone(), nil, Trailer{}, nil, nil
	return c
}

func (h *Header) clone() Header {
	var c Header
	for _, f := range h.fields {
		c.fields = append(c.fields, Field{bytes.Clone(f.Name), bytes.Clone(f.Value)})
	}
	return c
}

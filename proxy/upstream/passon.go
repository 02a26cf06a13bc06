package upstream

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"quayside.io/proxy/exchange"
)

// PassOn carries the bytes of a client to one of the endpoints, and back, until both
// have ended, as it does with upgraded connections. Before them it sends a PROXY
// header of that version, 1 or 2; 0: none. An error says that no endpoint could be
// reached, and nothing was sent to the client.
func (b *Backend) PassOn(c *exchange.Raw, version int) error {
	ex := &exchange.Exchange{}
	ex.Request.Client, ex.Request.Peer = c.Client, c.Peer
	t := b.engine.acquire(b, ex)
	t.out = appendProxyHeader(t.out, version, c.Client, c.Local)
	if err := t.repeat(t.reach); err != nil {
		t.give(err)
		t.release()
		return err
	}
	n := &tunnel{
		engine: b.engine, upstream: t.conn, client: c.Conn, silence: b.engine.options.UpgradeTimeout,
		picker: &b.picker, counted: t.counted,
	}
	t.conn, t.counted = nil, nil
	t.release()
	n.run()
	return nil
}

// reach connects to one endpoint, never by a connection that has been used, and sends
// it what goes before the client's bytes.
func (t *transaction) reach(last error) error {
	if err := t.choose(last); err != nil {
		return err
	}
	c, err := t.dial()
	t.linked = time.Since(t.chosen)
	if err != nil {
		return err
	}
	t.conn = c
	if len(t.out) == 0 {
		return nil
	}
	if err := t.writeRest(t.out); err != nil {
		err = t.broken(err, false, false)
		c.endpoint.discard(c)
		t.conn = nil
		return err
	}
	return nil
}

// give counts and logs why a client was not handed on.
func (t *transaction) give(err error) {
	f := &failure{reason: connectionLost, err: err}
	errors.As(err, &f)
	b := t.backend
	b.stats.count(f.reason)
	level := slog.LevelDebug
	if b.stats.worthALine(f.reason, time.Now()) {
		level = slog.LevelWarn // the client is told nothing that it could pass on
	}
	t.engine.options.Log.Log(context.Background(), level, "a connection could not be handed on",
		"service", b.of.Service, "port", b.of.Port, "error", f, "detail", f.detail)
}

// appendProxyHeader appends a PROXY header, see
// https://www.haproxy.org/download/2.8/doc/proxy-protocol.txt. Addresses of two
// families, which a listener for both may bring, are told in that of the longer.
func appendProxyHeader(b []byte, version int, client, local netip.AddrPort) []byte {
	from, to := client.Addr().Unmap(), local.Addr().Unmap()
	known := from.IsValid() && to.IsValid()
	if known && from.Is4() != to.Is4() {
		from, to = netip.AddrFrom16(from.As16()), netip.AddrFrom16(to.As16())
	}
	switch version {
	case 1:
		switch {
		case !known:
			return append(b, "PROXY UNKNOWN\r\n"...)
		case from.Is4():
			return fmt.Appendf(b, "PROXY TCP4 %s %s %d %d\r\n", from, to, client.Port(), local.Port())
		}
		return fmt.Appendf(b, "PROXY TCP6 %s %s %d %d\r\n", from, to, client.Port(), local.Port())
	case 2:
		b = append(b, "\r\n\r\n\x00\r\nQUIT\n"...)
		if !known {
			return append(b, 0x20, 0, 0, 0) // LOCAL: it says nothing of a client
		}
		b = append(b, 0x21)
		family, size := byte(0x11), uint16(12)
		if !from.Is4() {
			family, size = 0x21, 36
		}
		b = binary.BigEndian.AppendUint16(append(b, family), size)
		b = append(append(b, from.AsSlice()...), to.AsSlice()...)
		return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, client.Port()), local.Port())
	}
	return b
}

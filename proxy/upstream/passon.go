package upstream

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/proxyheader"
)

// PassOn carries the bytes of a client to one of the endpoints, and back, until both
// have ended, as it does with upgraded connections. Before them it sends a PROXY
// header of that version, 1 or 2; 0: none. An error says that no endpoint could be
// reached, and nothing was sent to the client.
func (b *Backend) PassOn(c *exchange.Raw, version int) error {
	ex := &exchange.Exchange{}
	ex.Request.Client, ex.Request.Peer = c.Client, c.Peer
	t := b.engine.acquire(b, ex)
	t.out = proxyheader.Append(t.out, version, c.Client, c.Local)
	if err := t.repeat(t.reach); err != nil {
		t.give(err)
		t.release()
		return err
	}
	t.tunnelTo(newConnEnd(t.conn, t.rules.SendTimeout), nil, b.engine.options.UpgradeTimeout)(c.Conn)
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

package forward

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"quayside.io/proxy/balance"
)

// dialTimeout bounds the wait for one endpoint; dialTries how many are tried
// for one connection.
const (
	dialTimeout = 5 * time.Second
	dialTries   = 3
)

// Forwarder carries connections. Make one with New.
type Forwarder struct {
	log   *slog.Logger
	want  atomic.Pointer[Plan]
	kick  chan struct{}
	conns sync.WaitGroup
}

// New returns a Forwarder that carries nothing yet.
func New(log *slog.Logger) *Forwarder {
	return &Forwarder{log: log, kick: make(chan struct{}, 1)}
}

// Set declares what is wanted; the latest wins. It never blocks.
func (f *Forwarder) Set(p *Plan) {
	f.want.Store(p)
	select {
	case f.kick <- struct{}{}:
	default: // Run has yet to see the last kick
	}
}

// Run listens and carries until ctx ends, then closes every connection.
func (f *Forwarder) Run(ctx context.Context) error {
	have := map[netip.AddrPort]*listener{}
	defer func() {
		for _, l := range have {
			l.close()
		}
		f.conns.Wait()
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.kick:
			f.reconcile(ctx, have)
		}
	}
}

func (f *Forwarder) reconcile(ctx context.Context, have map[netip.AddrPort]*listener) {
	want := f.want.Load().Targets
	for at, set := range want {
		l := have[at]
		if l == nil {
			socket, err := net.Listen("tcp", at.String())
			if err != nil {
				f.log.Error("cannot listen on an external address; tried again at the next change", "address", at, "error", err)
				continue
			}
			l = &listener{socket: socket, log: f.log}
			have[at] = l
			l.set.Store(set)
			f.conns.Go(func() { l.accept(ctx, &f.conns) })
		}
		l.set.Store(set)
	}
	for at, l := range have {
		if want[at] == nil {
			l.close()
			delete(have, at)
		}
	}
}

// A listener is one external address and port.
type listener struct {
	socket net.Listener
	set    atomic.Pointer[balance.Set]
	picker balance.Picker
	log    *slog.Logger
}

func (l *listener) close() { _ = l.socket.Close() }

func (l *listener) accept(ctx context.Context, conns *sync.WaitGroup) {
	for {
		client, err := l.socket.Accept()
		if err != nil {
			return // closed: the address is no longer wanted
		}
		conns.Go(func() { l.carry(ctx, client) })
	}
}

// carry joins client with an endpoint until either side is done or ctx ends.
func (l *listener) carry(ctx context.Context, client net.Conn) {
	defer client.Close()
	endpoint, err := l.dial(ctx)
	if err != nil {
		l.log.Warn("connection refused", "address", client.LocalAddr(), "error", err)
		return
	}
	defer endpoint.Close()
	stop := context.AfterFunc(ctx, func() {
		_ = client.Close()
		_ = endpoint.Close()
	})
	defer stop()
	var both sync.WaitGroup
	both.Go(func() { copyHalf(endpoint, client) })
	copyHalf(client, endpoint)
	both.Wait()
}

// dial connects to the next endpoint, and to the one after it if that fails.
func (l *listener) dial(ctx context.Context) (net.Conn, error) {
	set := l.set.Load()
	if len(set.Endpoints) == 0 {
		return nil, fmt.Errorf("no endpoint: %s", set.Why)
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	var tried []int
	var last error
	for range dialTries {
		i := l.picker.Next(set, time.Now(), tried)
		if i < 0 {
			break
		}
		e := set.Endpoints[i]
		conn, err := dialer.DialContext(ctx, "tcp", e.Addr.String())
		if err == nil {
			e.Health.Succeeded()
			return conn, nil
		}
		e.Health.Failed(time.Now())
		tried, last = append(tried, i), err
	}
	return nil, last
}

// copyHalf carries one direction and passes the end of it on.
func copyHalf(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if tcp, ok := to.(*net.TCPConn); ok && err == nil {
		_ = tcp.CloseWrite()
		return
	}
	_ = to.Close() // a broken half breaks the other, or it would wait forever
	_ = from.Close()
}

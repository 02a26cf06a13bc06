//go:build !portable

package serve

import (
	"cmp"
	"net"
	"os"
	"sync/atomic"
	"syscall"

	"quayside.io/proxy/socket"
)

// acceptor is a listening socket whose connections are accepted without package net,
// which asks each for its own address, tells it what it has inherited, and has the
// poller know of it before anybody waits (see accepted). One goroutine accepts.
type acceptor struct {
	file *os.File
	raw  syscall.RawConn
	addr net.Addr
	step func(fd uintptr) bool // the method value, made once

	got    *accepted
	err    error
	closed atomic.Bool
}

// acceptorOf takes over a listening socket, which is l itself where it cannot be.
func acceptorOf(l net.Listener) (net.Listener, error) {
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return l, nil
	}
	defer tcp.Close() // what it has is the same socket
	file, err := tcp.File()
	if err != nil {
		return nil, err
	}
	a := &acceptor{file: file, addr: tcp.Addr()}
	a.step = a.accept
	if a.raw, err = file.SyscallConn(); err != nil {
		file.Close()
		return nil, err
	}
	return a, nil
}

// Accept implements net.Listener.
func (a *acceptor) Accept() (net.Conn, error) {
	a.got, a.err = nil, nil
	err := cmp.Or(a.raw.Read(a.step), a.err)
	switch {
	case err == nil:
		return a.got, nil
	case a.closed.Load(): // the error of package os cannot be told by others
		err = net.ErrClosed
	}
	return nil, opError("accept", a.addr, err)
}

// accept is called by the poller whenever somebody may have connected; false means wait.
func (a *acceptor) accept(fd uintptr) bool {
	conn, from, err := socket.Accept(fd)
	if err == nil {
		a.got = &accepted{fd: conn, peer: from}
	}
	a.err = err
	return err != syscall.EAGAIN
}

// Close implements net.Listener.
func (a *acceptor) Close() error {
	a.closed.Store(true)
	return a.file.Close()
}

// Addr implements net.Listener.
func (a *acceptor) Addr() net.Addr { return a.addr }

// SyscallConn implements syscall.Conn.
func (a *acceptor) SyscallConn() (syscall.RawConn, error) { return a.raw, nil }

var (
	_ net.Listener = (*acceptor)(nil)
	_ syscall.Conn = (*acceptor)(nil)
)

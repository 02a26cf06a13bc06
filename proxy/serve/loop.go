package serve

import (
	"context"
	"net"
	"runtime"
	"syscall"

	"quayside.io/proxy/loop"
)

func (s *Server) loop(open *listener) {
	lp, err := loop.New(0)
	if err != nil {
		panic(err)
	}
	tcp := open.Listener.(*net.TCPListener)
	raw, _ := tcp.SyscallConn()
	raw.Control(func(fd uintptr) {
		syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_DEFER_ACCEPT, 1)
		syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
		err = lp.Listen(int(fd), func(c *loop.Conn) {
			nc, err := open.wrap(c)
			if err != nil {
				return
			}
			s.serveAgain(nc)
			nc.Close()
		})
	})
	if err != nil {
		panic(err)
	}
	go func() { lp.Run(context.Background()); runtime.KeepAlive(tcp) }()
}

// Loop is the loop that the connection is of.
func (c *client) Loop() *loop.Loop {
	if l, ok := c.socket.(*loop.Conn); ok {
		return l.Loop()
	}
	return nil
}

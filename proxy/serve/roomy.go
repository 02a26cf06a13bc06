package serve

import (
	"math/bits"
	"net"

	"github.com/valyala/fasthttp"
)

// roomy is fasthttp's server for heads that are larger than Options.HeadSize. fasthttp reads a
// head into one buffer, whose size is the same for all connections of a server, so it takes
// another server to have another size.
type roomy struct {
	*fasthttp.Server
	size int
}

// makeRoom sees to it that connections have room for heads of so many bytes from now on. Those
// that are in use go on with what they have.
func (s *Server) makeRoom(size int) {
	size = 1 << bits.Len(uint(size-1))
	switch now := s.roomy.Load(); {
	case size <= s.options.HeadSize:
		s.roomy.Store(nil)
	case now == nil || now.size != size:
		s.roomy.Store(&roomy{s.newHTTP(size), size})
	}
}

// fasthttp returns the server that connections are served by from now on.
func (s *Server) fasthttp() *fasthttp.Server {
	if r := s.roomy.Load(); r != nil {
		return r.Server
	}
	return s.http
}

// serves has a new connection served if it is to have more room than who accepts it gives. It
// reports whether it does.
func (s *Server) serves(c net.Conn) bool {
	if s.roomy.Load() == nil {
		return false
	}
	s.again.Add(1)
	go s.serveAgain(c)
	return true
}

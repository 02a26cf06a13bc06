//go:build !linux || portable

package serve

import (
	"errors"
	"net"
	"syscall"
)

// restPoll is not there: nothing here looks at a connection without reading.
type restPoll struct{}

func newRestPoll() (*restPoll, error)                { return nil, errors.ErrUnsupported }
func (*restPoll) run(func([]int))                    {}
func (*restPoll) watch(syscall.RawConn) (int, error) { return 0, errors.ErrUnsupported }
func (*restPoll) forget(syscall.RawConn)             {}
func (*restPoll) remove(int)                         {}
func (*restPoll) close()                             {}

// directs: what direct needs is there.
const directs = false

func (s *Server) newDirect() any { return nil }

func (s *Server) serveDirect(net.Conn) error { return net.ErrClosed }

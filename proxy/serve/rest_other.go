//go:build !linux || portable

package serve

import "net"

// rests: nothing here looks at a connection without reading, so none is laid to rest.
const rests = false

func come(uintptr) bool { return true }

// directs: what direct needs is there.
const directs = false

func (s *Server) newDirect() any { return nil }

func (s *Server) serveDirect(net.Conn) error { return net.ErrClosed }

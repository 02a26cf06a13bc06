//go:build !linux || portable

package serve

import "net"

// listen opens a listening socket.
func listen(address string, _ bool) (net.Listener, error) { return net.Listen("tcp", address) }

// acceptSilent has nothing to end here.
func acceptSilent(net.Listener) error { return nil }

// shut ends what is written.
func (c *client) shut() { c.CloseWrite() }

// writeLast writes bytes that the end of the connection follows at once.
func (c *client) writeLast(b []byte) (int, error) { return c.Conn.Write(b) }

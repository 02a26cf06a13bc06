//go:build !linux || portable

package serve

import "net"

// listen opens a listening socket.
func listen(address string) (net.Listener, error) { return net.Listen("tcp", address) }

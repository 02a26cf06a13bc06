//go:build !portable

package serve

import "quayside.io/proxy/socket"

// rests: connections can be waited for without reading.
const rests = true

// directs: what direct needs is there.
const directs = true

// come reports whether the next byte, or the end, has come.
func come(fd uintptr) bool { return socket.Come(fd) }

//go:build !linux || portable

package serve

// poll sees nothing off Linux: that a client has hung up is noticed when it is answered.
func (c *client) poll(uintptr) {}

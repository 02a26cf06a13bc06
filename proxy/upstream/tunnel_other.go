//go:build !linux || portable

package upstream

// pull moves bytes from a pod without TLS.
func (n *tunnel) pull(*conn) error { return n.copy(n.client, readerFunc(n.read)) }

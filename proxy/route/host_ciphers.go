package route

// parseHostCiphers reads ssl-ciphers of an Ingress.
func parseHostCiphers(s *settings, value string) error {
	return set(&s.ciphers, value, Ciphers)
}

// ciphers has handshakes for the hosts of the Ingress use certain suites.
func (b *unitBuilder) ciphers() {
	for _, c := range b.parts {
		c.ciphers = b.settings.ciphers
	}
}

// ciphersOf returns the suites that the oldest of some parts wants, nil for none in
// particular.
func ciphersOf(parts []*part) []uint16 {
	for _, c := range parts {
		if c.ciphers != nil {
			return c.ciphers
		}
	}
	return nil
}

// countCiphers is 1 for a host with suites of its own, 0 for any other, or none.
func (h *host) countCiphers() int {
	if h != nil && h.ciphers != nil {
		return 1
	}
	return 0
}

// Ciphers returns the suites before TLS 1.3 of handshakes for a server name, nil for
// those of all.
func (t *Table) Ciphers(serverName string) []uint16 {
	if t.state.ciphered == 0 {
		return nil
	}
	var buf [maxHost]byte
	name := appendHost(buf[:0], serverName)
	for rank := exactly; rank <= byWildcard; rank++ {
		if h := t.host(name, rank); h != nil {
			return h.ciphers
		}
	}
	return nil
}

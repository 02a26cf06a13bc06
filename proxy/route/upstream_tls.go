package route

import (
	"strings"

	"quayside.io/cluster/snapshot"
)

// UpstreamTLS is how a backend is spoken to over TLS. It is comparable; the zero
// value is plain TCP.
type UpstreamTLS struct {
	On bool
	// Verify asks for a certificate of Name from the authorities of Secret, or,
	// where Secret has no ca.crt, from those of the system. An empty Name is the
	// Service's in the cluster, "web.default.svc".
	Verify bool
	Name   string
	// SendName sends Name with the handshake (SNI).
	SendName bool
	// Secret holds our own certificate (tls.crt and tls.key) and the authorities
	// (ca.crt), each of which may be missing. Zero: there is none.
	Secret snapshot.Key
	// MinVersion and MaxVersion are those of crypto/tls, such as
	// tls.VersionTLS12; 0 leaves them to it.
	MinVersion, MaxVersion uint16
	// Ciphers are those before TLS 1.3 as Ciphers reads them; empty: Go's own. It is
	// text, because a slice cannot be compared.
	Ciphers string
	// MaxDepth, where Verify is set, is how many authorities may stand between the
	// certificate and one that is trusted. Without LimitDepth, any number.
	LimitDepth bool
	MaxDepth   int
}

// hostsName is the Name of backends that have the certificate of the host whose path it is.
const hostsName = "$host"

// at returns t for paths of a host, and false where that has not one name.
func (t UpstreamTLS) at(host string) (UpstreamTLS, bool) {
	if t.Name != hostsName {
		return t, true
	}
	t.Name = host
	return t, host != "" && !strings.HasPrefix(host, "*")
}

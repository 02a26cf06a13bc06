package route

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
)

// TLSPolicy is how clients may speak TLS, whatever the server name. It is immutable.
type TLSPolicy struct {
	// MinVersion and MaxVersion are those of crypto/tls; 0: its own, 1.2 at least.
	MinVersion, MaxVersion uint16
	// Ciphers are those before TLS 1.3, whose own are not for choosing; nil: Go's.
	Ciphers []uint16
	// RejectUnknown ends handshakes for server names that no Ingress has.
	RejectUnknown bool
}

// isZero reports whether p asks for nothing.
func (p *TLSPolicy) isZero() bool {
	return p.MinVersion == 0 && p.MaxVersion == 0 && p.Ciphers == nil && !p.RejectUnknown
}

// tlsPolicy returns what w says of TLS, nil for nothing.
func (w *wide) tlsPolicy() *TLSPolicy {
	if w.policy.isZero() {
		return nil
	}
	return &w.policy
}

// parseVersions reads ssl-protocols: a list of versions without a gap.
func parseVersions(w *wide, value string) error {
	names := []string{"TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"}
	listed := make([]bool, len(names))
	for name := range strings.FieldsSeq(value) {
		i := slices.Index(names, name)
		if i < 0 {
			return fmt.Errorf("%q is none of %s", name, strings.Join(names, ", "))
		}
		listed[i] = true
	}
	first := slices.Index(listed, true)
	last := first
	for last+1 < len(listed) && listed[last+1] {
		last++
	}
	if slices.Contains(listed[last+1:], true) {
		return fmt.Errorf("%q leaves a version out between others", value)
	}
	w.policy.MinVersion, w.policy.MaxVersion = tls.VersionTLS10+uint16(first), tls.VersionTLS10+uint16(last)
	return nil
}

// parseCiphers reads ssl-ciphers: OpenSSL's names with colons. Those that Go does not
// have, such as all with plain Diffie-Hellman, are left out, as OpenSSL does.
func parseCiphers(w *wide, value string) error {
	known := openSSLCiphers()
	var list []uint16
	for name := range strings.SplitSeq(value, ":") {
		if id, ok := known[strings.TrimSpace(name)]; ok {
			list = append(list, id)
		}
	}
	if list == nil {
		return fmt.Errorf("none of %q is a cipher suite that is known", value)
	}
	w.policy.Ciphers = list
	return nil
}

// openSSLCiphers are the suites before TLS 1.3 that Go still has and finds safe
// enough, by OpenSSL's names.
func openSSLCiphers() map[string]uint16 {
	return map[string]uint16{
		"ECDHE-ECDSA-AES128-GCM-SHA256": tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
		"ECDHE-RSA-AES128-GCM-SHA256":   tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
		"ECDHE-ECDSA-AES256-GCM-SHA384": tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
		"ECDHE-RSA-AES256-GCM-SHA384":   tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
		"ECDHE-ECDSA-CHACHA20-POLY1305": tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
		"ECDHE-RSA-CHACHA20-POLY1305":   tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
		"ECDHE-ECDSA-AES128-SHA":        tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA,
		"ECDHE-RSA-AES128-SHA":          tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA,
		"ECDHE-ECDSA-AES256-SHA":        tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA,
		"ECDHE-RSA-AES256-SHA":          tls.TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA,
	}
}

func parseRejectUnknown(w *wide, value string) (err error) {
	w.policy.RejectUnknown, err = parseBool(value)
	return err
}

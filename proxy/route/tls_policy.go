package route

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"quayside.io/proxy/exchange"
)

// TLSPolicy is how clients may speak TLS, whatever the server name. It is immutable.
type TLSPolicy struct {
	// MinVersion and MaxVersion are those of crypto/tls; 0: its own, 1.2 at least.
	MinVersion, MaxVersion uint16
	// Ciphers are those before TLS 1.3, whose own are not for choosing; nil: Go's.
	Ciphers []uint16
	// NoTickets gives clients no session tickets: each handshake is a full one.
	NoTickets bool
	// TicketKey seals and opens them instead of the keys that all proxies share; nil:
	// those do.
	TicketKey *[32]byte
	// Staple sends OCSP responses along with certificates that name a responder.
	Staple bool
	// RejectUnknown ends handshakes for server names that no Ingress has.
	RejectUnknown bool
	// NoHTTP2 offers clients HTTP/1.1 alone.
	NoHTTP2 bool
}

// isZero reports whether p asks for nothing.
func (p *TLSPolicy) isZero() bool {
	return p.MinVersion == 0 && p.MaxVersion == 0 && p.Ciphers == nil && !p.NoTickets && p.TicketKey == nil && !p.Staple && !p.RejectUnknown && !p.NoHTTP2
}

// tlsPolicy returns what w says of TLS, nil for nothing.
func (w *globalOptions) tlsPolicy() *TLSPolicy {
	if w.policy.isZero() {
		return nil
	}
	return &w.policy
}

// parseVersions reads ssl-protocols.
func parseVersions(w *globalOptions, value string) error {
	least, most, err := tlsVersions(value)
	if err == nil {
		w.policy.MinVersion, w.policy.MaxVersion = least, most
	}
	return err
}

// tlsVersions reads a list of versions without a gap.
func tlsVersions(value string) (least, most uint16, err error) {
	names := []string{"TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"}
	listed := make([]bool, len(names))
	for name := range strings.FieldsSeq(value) {
		i := slices.Index(names, name)
		if i < 0 {
			return 0, 0, fmt.Errorf("%q is none of %s", name, strings.Join(names, ", "))
		}
		listed[i] = true
	}
	first := slices.Index(listed, true)
	if first < 0 {
		return 0, 0, errors.New("it lists no version")
	}
	last := first
	for last+1 < len(listed) && listed[last+1] {
		last++
	}
	if slices.Contains(listed[last+1:], true) {
		return 0, 0, fmt.Errorf("%q leaves a version out between others", value)
	}
	return tls.VersionTLS10 + uint16(first), tls.VersionTLS10 + uint16(last), nil
}

// parseCiphers reads ssl-ciphers.
func parseCiphers(w *globalOptions, value string) error {
	return set(&w.policy.Ciphers, value, Ciphers)
}

// Ciphers reads a list of suites before TLS 1.3 in OpenSSL's words: names, DEFAULT,
// HIGH or ALL for those that Go has, and with ! or - what is left out. Suites that Go
// does not have, such as all with plain Diffie-Hellman, are passed over, as OpenSSL
// does. Their order is Go's own.
func Ciphers(value string) ([]uint16, error) {
	known := openSSLCiphers()
	chosen := map[uint16]bool{}
	some := false
	for word := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == ':' || r == ',' || r == ' ' }) {
		name := strings.TrimLeft(word, "!-")
		id, there := known[name]
		switch {
		case name != word && there:
			delete(chosen, id)
		case name != word && !leavesOutNothing(name):
			return nil, fmt.Errorf("%q leaves out more than single suites, which is not understood", word)
		case name != word:
		case name == "DEFAULT", name == "HIGH", name == "ALL":
			some = true
			for _, id := range known {
				chosen[id] = true
			}
		case there:
			some, chosen[id] = true, true
		}
	}
	if !some || len(chosen) == 0 {
		return nil, fmt.Errorf("none of %.200q is a cipher suite that is known", value)
	}
	return slices.Sorted(maps.Keys(chosen)), nil
}

// leavesOutNothing reports whether no suite that Go has belongs to a group of
// OpenSSL's.
func leavesOutNothing(group string) bool {
	return slices.Contains([]string{
		"aNULL", "eNULL", "NULL", "ADH", "AECDH", "EXP", "EXPORT", "LOW", "MEDIUM", "DES", "3DES", "RC2", "RC4", "MD5", "PSK", "SRP", "DSS", "aDSS",
		"IDEA", "SEED", "CAMELLIA", "ARIA", "DH", "DHE", "EDH", "kDHE", "kEDH", "kRSA", "kDH", "kECDH", "aDH", "aECDH", "SSLv2", "KRB5", "CBC3",
	}, group)
}

// openSSLCiphers are the suites before TLS 1.3 that Go still has and finds safe
// enough, by OpenSSL's names.
func openSSLCiphers() map[string]uint16 {
	suites := map[string]uint16{}
	for _, s := range tls.CipherSuites() {
		if slices.Contains(s.SupportedVersions, tls.VersionTLS12) {
			suites[exchange.CipherName(s.ID)] = s.ID
		}
	}
	return suites
}

func parseTickets(w *globalOptions, value string) error {
	return set(&w.policy.NoTickets, value, parseOff)
}

// parseTicketKey reads ssl-session-ticket-key: 48 or 80 bytes in base64, as nginx has
// them. What seals is made of all of them.
func parseTicketKey(w *globalOptions, value string) error {
	raw, err := base64.StdEncoding.DecodeString(value)
	if err != nil || len(raw) != 48 && len(raw) != 80 {
		return errors.New("it is not 48 or 80 bytes in base64") // which says nothing of its content
	}
	key := sha256.Sum256(append([]byte("quayside ssl-session-ticket-key\x00"), raw...))
	w.policy.TicketKey = &key
	return nil
}

func parseStaple(w *globalOptions, value string) error {
	return set(&w.policy.Staple, value, parseBool)
}

func parseRejectUnknown(w *globalOptions, value string) error {
	return set(&w.policy.RejectUnknown, value, parseBool)
}

func parseHTTP2(w *globalOptions, value string) error {
	return set(&w.policy.NoHTTP2, value, parseOff)
}

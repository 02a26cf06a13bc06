package explain

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/route"
)

// errTarget is the error for a target that no trace understands.
var errTarget = errors.New("not a target")

// Target is where a path leads to.
type Target struct {
	text    string
	address netip.Addr // with a port, perhaps
	port    servicePort
	service snapshot.Key // or
	tls     bool
	host    string // may have a port
	path    []byte // normalised
}

// servicePort is a port of Services as a client knows it; its zero value is any.
type servicePort struct {
	number   int32
	protocol corev1.Protocol // empty: any
}

// is reports whether a port of a Service is one of those.
func (p servicePort) is(of corev1.ServicePort) bool {
	return (p.number == 0 || p.number == of.Port) && (p.protocol == "" || p.protocol == protocolOf(of))
}

// in reports whether a Service has one of those.
func (p servicePort) in(s *corev1.Service) bool { return slices.ContainsFunc(s.Spec.Ports, p.is) }

// String returns "53/UDP", or "53" of any protocol.
func (p servicePort) String() string {
	if p.protocol == "" {
		return strconv.Itoa(int(p.number))
	}
	return fmt.Sprintf("%d/%s", p.number, p.protocol)
}

// ParseTarget reads "http://host/path", "https://host/path", "service/NAMESPACE/NAME" or an IP
// address, which may have a port and a protocol: "192.0.2.1:53", "[2001:db8::1]:53/udp".
func ParseTarget(text string) (Target, error) {
	if ip, err := netip.ParseAddr(text); err == nil {
		return Target{text: text, address: ip.Unmap()}, nil
	}
	place, protocol, named := strings.Cut(text, "/")
	if at, err := netip.ParseAddrPort(place); err == nil {
		port := servicePort{int32(at.Port()), corev1.Protocol(strings.ToUpper(protocol))}
		if at.Port() == 0 || named && port.protocol != corev1.ProtocolTCP && port.protocol != corev1.ProtocolUDP && port.protocol != corev1.ProtocolSCTP {
			return Target{}, fmt.Errorf("%w: %q: want ADDRESS:PORT, with /tcp, /udp or /sctp behind it or without", errTarget, text)
		}
		return Target{text: text, address: at.Addr().Unmap(), port: port}, nil
	}
	if rest, ok := strings.CutPrefix(text, "service/"); ok {
		namespace, name, ok := strings.Cut(rest, "/")
		if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
			return Target{}, fmt.Errorf("%w: %q: want service/NAMESPACE/NAME", errTarget, text)
		}
		return Target{text: text, service: snapshot.Key{Namespace: namespace, Name: name}}, nil
	}
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return Target{}, fmt.Errorf("%w: %q: want http://host/path, https://host/path, service/NAMESPACE/NAME or an IP address, perhaps with a port", errTarget, text)
	}
	path, ok := route.Normalize(nil, []byte(cmp.Or(u.EscapedPath(), "/")))
	if !ok {
		return Target{}, fmt.Errorf("%w: %q: the proxy answers 400 to this path", errTarget, text)
	}
	host, err := canonicalHost(u)
	if err != nil {
		return Target{}, fmt.Errorf("%w: %q: %w", errTarget, text, err)
	}
	return Target{text: text, tls: u.Scheme == "https", host: host, path: path}, nil
}

// canonicalHost is the host of a URL as a client sends it and rules name it: in lower case,
// in letters of ASCII, without the dot of the root. The port stays.
func canonicalHost(u *url.URL) (string, error) {
	name, port := strings.TrimSuffix(u.Hostname(), "."), u.Port()
	if ascii, err := idna.Lookup.ToASCII(name); err == nil {
		name = ascii
	}
	name = strings.ToLower(name)
	if strings.Contains(name, ":") {
		name = "[" + name + "]"
	}
	if name == "" {
		return "", errors.New("it names no host")
	}
	if port == "" {
		return name, nil
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("port %s: want 1 to 65535", port)
	}
	return name + ":" + port, nil
}

package balance

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/cluster/snapshot"
)

// External is what the name of a Service of type ExternalName leads to.
type External struct {
	// Addrs are its addresses. Why says why there are none.
	Addrs []netip.Addr
	Why   string
	// Refuse says why an address is not asked that is no endpoint's: a node's, the API
	// server's; empty: it may be. Nil: none is.
	Refuse func(netip.Addr) string
}

// Outside returns a Service of type ExternalName that stands for its own name, which is a host's
// or an address. The cluster has no such Service.
func Outside(name snapshot.Key) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: name.Name}}
}

// OutsideName returns the name that a Service of type ExternalName stands for, in
// lower case and without a dot at its end, or an IP address as text. The error says
// what is wrong with it, in words for the owner of the Service.
func OutsideName(svc *corev1.Service) (string, error) {
	name := strings.ToLower(strings.TrimSuffix(svc.Spec.ExternalName, "."))
	if _, err := netip.ParseAddr(name); err == nil {
		return name, nil
	}
	switch {
	case name == "":
		return "", errors.New("it names nothing")
	case name == "localhost" || strings.HasSuffix(name, ".localhost"):
		return "", fmt.Errorf("%s is refused: it is the proxy itself", name)
	case len(name) > 253:
		return "", errors.New("its name is longer than 253 bytes")
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || strings.ContainsFunc(label, func(r rune) bool {
			return r != '-' && r != '_' && (r < 'a' || 'z' < r) && (r < '0' || '9' < r)
		}) {
			return "", fmt.Errorf("%.100q is not a DNS name", name)
		}
	}
	return name, nil
}

// Outside returns the port that p means on what a Service of type ExternalName stands
// for: the target port of its own port, if it has that one, or the number itself.
func (p PortRef) Outside(svc *corev1.Service) (uint16, error) {
	number := p.Number
	for _, port := range svc.Spec.Ports {
		if p.Name != "" && port.Name == p.Name || p.Name == "" && port.Port == p.Number {
			number = cmp.Or(port.TargetPort.IntVal, port.Port)
			break
		}
	}
	if number < 1 || number > 65535 {
		return 0, fmt.Errorf("no port %s in Service %s/%s, which stands for a name outside: give its number", p, svc.Namespace, svc.Name)
	}
	return uint16(number), nil
}

// external returns the addresses of e as endpoints.
func (b *builder) external(e External, port PortRef) *Set {
	number, err := port.Outside(b.service)
	if err != nil {
		return &Set{Why: err.Error()}
	}
	s := &Set{}
	var list []candidate
	for _, a := range e.Addrs {
		a = a.Unmap()
		why := cmp.Or(b.refuse(a), RefuseOutside(a))
		if why == "" && e.Refuse != nil {
			why = e.Refuse(a)
		}
		if why != "" {
			s.Refused = append(s.Refused, fmt.Sprintf("%s of %s: %s", a, b.service.Spec.ExternalName, why))
			continue
		}
		list = append(list, candidate{Endpoint: Endpoint{Addr: netip.AddrPortFrom(a, number)}})
	}
	s.Endpoints = unique(list)
	slices.Sort(s.Refused)
	outside := b.service.Spec.ExternalName
	name, stands := "Service "+b.service.Namespace+"/"+b.service.Name, "of type ExternalName"
	if b.service.Name == outside {
		name, stands = outside, "outside of the cluster"
	}
	switch {
	case len(s.Endpoints) > 0:
	case len(s.Refused) > 0:
		s.Why = fmt.Sprintf("%s leads to addresses only that are refused (%s)", name, s.Refused[0])
	default:
		s.Why = fmt.Sprintf("%s is %s and %s", name, stands, cmp.Or(e.Why, "its proxies look "+outside+" up"))
	}
	return s
}

// RefuseOutside says why an address outside the cluster is never asked, whatever name
// leads there, or nothing: those that mean the machine's cloud. Those of the machine
// itself are refused by whoever knows whether they are allowed.
func RefuseOutside(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	if b := Translated(a); b != a {
		if a = b; a.IsLoopback() || a.IsUnspecified() || a.IsMulticast() {
			return "not the address of one endpoint"
		}
	}
	if a.IsLinkLocalUnicast() { // 169.254.169.254 is most clouds' metadata
		return "link-local addresses are refused"
	}
	for _, metadata := range [...]string{"fd00:ec2::254", "fd20:ce::254", "100.100.100.200"} { // AWS, Google, Alibaba
		if a == netip.MustParseAddr(metadata) {
			return "the address of the cloud's metadata is refused"
		}
	}
	return ""
}

// Translated returns the IPv4 address that a NAT64 translator makes of a (RFC 6052, the
// well-known prefix 64:ff9b::/96), or a.
func Translated(a netip.Addr) netip.Addr {
	if !netip.MustParsePrefix("64:ff9b::/96").Contains(a) {
		return a
	}
	b := a.As16()
	return netip.AddrFrom4([4]byte(b[12:]))
}

package balance

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// PortRef names a port of a Service the way an Ingress does: by number or by
// name. It is comparable.
type PortRef struct {
	Number int32
	Name   string
}

// String returns the name, or the number of a port that was named by number.
func (p PortRef) String() string {
	if p.Name != "" {
		return p.Name
	}
	return strconv.Itoa(int(p.Number))
}

// Find returns the port of svc that ref names. The error says which ports there
// are, in words for the owner of the Ingress.
func (p PortRef) Find(svc *corev1.Service) (corev1.ServicePort, error) {
	var known []string
	for _, port := range svc.Spec.Ports {
		if port.Protocol != "" && port.Protocol != corev1.ProtocolTCP {
			continue // HTTP needs TCP; port 53 may exist once for each protocol
		}
		if p.Name != "" && port.Name == p.Name || p.Name == "" && port.Port == p.Number {
			return port, nil
		}
		known = append(known, describePort(port))
	}
	if len(known) == 0 {
		return corev1.ServicePort{}, fmt.Errorf("no TCP port in Service %s/%s", svc.Namespace, svc.Name)
	}
	return corev1.ServicePort{}, fmt.Errorf("no TCP port %s in Service %s/%s, which has %s",
		p, svc.Namespace, svc.Name, strings.Join(known, ", "))
}

func describePort(p corev1.ServicePort) string {
	if p.Name == "" {
		return strconv.Itoa(int(p.Port))
	}
	return fmt.Sprintf("%d named %s", p.Port, p.Name)
}

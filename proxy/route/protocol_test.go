package route

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// The annotation says how endpoints are spoken to, and where it is silent the
// port's appProtocol.
func TestProtocol(t *testing.T) {
	h2c, ws := "kubernetes.io/h2c", "kubernetes.io/ws"
	for _, c := range []struct {
		annotation string
		app        *string
		http2, tls bool
	}{
		{"", nil, false, false},
		{"", &ws, false, false},
		{"", &h2c, true, false},
		{"HTTP", &h2c, false, false},
		{"HTTPS", &h2c, false, true},
		{"GRPC", nil, true, false},
		{"grpcs", nil, true, true},
		{"H2C", &ws, true, false},
	} {
		var s settings
		if c.annotation != "" {
			if err := parseProtocol(&s, c.annotation); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.protocol.of(corev1.ServicePort{AppProtocol: c.app}); got != c.http2 || s.upstream.On != c.tls {
			t.Errorf("%+v: HTTP/2 %v, TLS %v", c, got, s.upstream.On)
		}
	}
	if err := parseProtocol(&settings{}, "FCGI"); err == nil {
		t.Error("FCGI is understood")
	}
	one := &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	other := one.DeepCopy()
	other.Spec.Ports[0].AppProtocol = &h2c
	if !sameService(one, one.DeepCopy()) || !sameService(other, other.DeepCopy()) || sameService(one, other) {
		t.Error("a Service whose appProtocol changes is another one to routes")
	}
}

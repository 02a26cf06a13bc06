package balance_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"quayside.io/proxy/balance"
)

// What a Service of type ExternalName may stand for, up to the last byte.
func TestOutsideName(t *testing.T) {
	label := strings.Repeat("a", 63)
	long := strings.Join([]string{label, label, label}, ".") + "." // 192 bytes
	for name, want := range map[string]string{
		"Shop.Example.":                "shop.example",
		"_a-b0.example":                "_a-b0.example",
		"192.0.2.1":                    "192.0.2.1",
		"2001:DB8::1":                  "2001:db8::1",
		label + ".example":             label + ".example",
		label + "a.example":            "",
		long + strings.Repeat("b", 61): long + strings.Repeat("b", 61), // 253
		long + strings.Repeat("b", 62): "",
		"":                             "",
		".":                            "",
		"a..example":                   "",
		".example":                     "",
		"a b.example":                  "",
		"a/b":                          "",
		"a:80":                         "",
		"localhost":                    "",
		"LOCALHOST.":                   "",
		"x.localhost":                  "",
		"notlocalhost":                 "notlocalhost",
		"\u00e4.example":               "",
		"{.example":                    "", // behind z
		"`.example":                    "", // before a
		"zz-09.example":                "zz-09.example",
		"/.example":                    "", // before 0
		"a;.example":                   "",
	} {
		got, err := balance.OutsideName(&corev1.Service{Spec: corev1.ServiceSpec{ExternalName: name}})
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v; want %q", name, got, err, want)
		}
	}
}

// The port of a name outside is that of the Service, or else the number itself.
func TestOutsidePort(t *testing.T) {
	svc := &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{
		{Name: "web", Port: 80, TargetPort: intstr.FromInt32(8080)}, {Name: "same", Port: 443},
		{Name: "low", Port: 1}, {Name: "high", Port: 2, TargetPort: intstr.FromInt32(65535)},
		{Name: "over", Port: 3, TargetPort: intstr.FromInt32(65536)}, {Name: "under", Port: 4, TargetPort: intstr.FromInt32(-1)},
	}}}
	for _, c := range []struct {
		ref  balance.PortRef
		want uint16 // 0: refused
	}{
		{balance.PortRef{Name: "web"}, 8080}, {balance.PortRef{Number: 80}, 8080}, {balance.PortRef{Name: "same"}, 443},
		{balance.PortRef{Name: "low"}, 1}, {balance.PortRef{Name: "high"}, 65535}, {balance.PortRef{Name: "over"}, 0}, {balance.PortRef{Name: "under"}, 0},
		{balance.PortRef{Number: 5}, 5}, {balance.PortRef{Number: 65535}, 65535}, {balance.PortRef{Number: 65536}, 0},
		{balance.PortRef{Number: -1}, 0}, {balance.PortRef{}, 0}, {balance.PortRef{Name: "none"}, 0},
	} {
		if got, err := c.ref.Outside(svc); got != c.want || (err == nil) != (c.want != 0) {
			t.Errorf("%v is %d, %v; want %d", c.ref, got, err, c.want)
		}
	}
}

// TestAddressesOutside: what a name may lead to, in whatever form DNS gives it. The rest is told
// in order, and addresses that are given twice count once.
func TestAddressesOutside(t *testing.T) {
	svc := &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "shop.example"}}
	e := balance.External{Refuse: func(a netip.Addr) string {
		if a == netip.MustParseAddr("10.0.0.9") {
			return "it is a node"
		}
		return ""
	}}
	var refused []string
	for _, text := range []string{
		"10.0.0.2", "::ffff:10.0.0.1", "2001:db8::1", "10.0.0.2", // and no other
		"::1", "::ffff:127.0.0.1", "127.0.0.1", "::ffff:169.254.169.254", "fe80::1", "64:ff9b::7f00:1", "fd00:ec2::254", "100.100.100.200",
		"0.0.0.0", "::", "224.0.0.1", "ff02::1", "::ffff:10.0.0.9",
	} {
		a := netip.MustParseAddr(text)
		if e.Addrs = append(e.Addrs, a); len(e.Addrs) > 4 {
			refused = append(refused, a.Unmap().String())
		}
	}
	s := balance.Compile(svc, nil, balance.PortRef{Number: 443}, "", "", balance.Options{External: e})
	var got []string
	for i := range s.Endpoints {
		got = append(got, s.Endpoints[i].Addr.String())
	}
	if want := []string{"10.0.0.1:443", "10.0.0.2:443", "[2001:db8::1]:443"}; !slices.Equal(got, want) {
		t.Errorf("it leads to %v, wanted %v", got, want)
	}
	slices.Sort(refused)
	for i, a := range refused {
		if i >= len(s.Refused) || !strings.HasPrefix(s.Refused[i], a+" of shop.example: ") {
			t.Errorf("of %v these are refused: %q", refused, s.Refused)
			break
		}
	}
}

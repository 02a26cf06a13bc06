package announce

import (
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
)

// seconds is a field of a BGPPeer.
func seconds(n float64) *metav1.Duration {
	return &metav1.Duration{Duration: time.Duration(n * float64(time.Second))}
}

// session compiles a BGPPeer on a node of this address, and returns its session or why it
// has none.
func session(t *testing.T, node string, change func(*v1alpha1.BGPPeerSpec)) (*Session, string) {
	t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n0"}}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: node}}
	p := &v1alpha1.BGPPeer{ObjectMeta: metav1.ObjectMeta{Name: "router"}, Spec: v1alpha1.BGPPeerSpec{MyASN: 64500, ASN: 65001, Address: "192.0.2.1"}}
	change(&p.Spec)
	plan := Compile(snapshot.Of(n, p), "n0", View{Alive: map[string]struct{}{"n0": {}}}, epoch0(), Options{})
	for _, problem := range plan.Problems {
		if problem.Reason == "InvalidPeer" {
			return nil, problem.Message
		}
	}
	if len(plan.BGP.Sessions) != 1 {
		t.Fatalf("%d sessions, problems %v", len(plan.BGP.Sessions), plan.Problems)
	}
	return &plan.BGP.Sessions[0], ""
}

// TestRulesOfPeers: each rule at its bounds, and what it says when it is broken.
func TestRulesOfPeers(t *testing.T) {
	type change = func(*v1alpha1.BGPPeerSpec)
	hold := func(n float64) change { return func(s *v1alpha1.BGPPeerSpec) { s.HoldTime = seconds(n) } }
	keepalive := func(n float64) change { return func(s *v1alpha1.BGPPeerSpec) { s.KeepaliveTime = seconds(n) } }
	connect := func(n float64) change { return func(s *v1alpha1.BGPPeerSpec) { s.ConnectTime = seconds(n) } }
	both := func(k, h float64) change {
		return func(s *v1alpha1.BGPPeerSpec) { s.KeepaliveTime, s.HoldTime = seconds(k), seconds(h) }
	}
	asn := func(mine, peers, local int64) change {
		return func(s *v1alpha1.BGPPeerSpec) { s.MyASN, s.ASN, s.LocalASN = mine, peers, local }
	}
	port := func(n int32) change { return func(s *v1alpha1.BGPPeerSpec) { s.Port = n } }
	password := func(n int) change {
		return func(s *v1alpha1.BGPPeerSpec) { s.Password = strings.Repeat("x", n) }
	}
	by := func(name, address string) change {
		return func(s *v1alpha1.BGPPeerSpec) { s.Interface, s.Address = name, address }
	}
	from := func(address, source string) change {
		return func(s *v1alpha1.BGPPeerSpec) { s.Address, s.SrcAddress = address, source }
	}
	router := func(id string) change { return func(s *v1alpha1.BGPPeerSpec) { s.RouterID = id } }
	ttl := func(s *v1alpha1.BGPPeerSpec) { s.TTLSecurity = true }
	with := func(all ...change) change {
		return func(s *v1alpha1.BGPPeerSpec) {
			for _, change := range all {
				change(s)
			}
		}
	}
	hops := func(s *v1alpha1.BGPPeerSpec) { s.EBGPMultiHop = true }
	dynamic := func(asn int64, kind string) change {
		return func(s *v1alpha1.BGPPeerSpec) { s.ASN, s.DynamicASN = asn, kind }
	}
	secret := func(s *v1alpha1.BGPPeerSpec) { s.PasswordSecret.Name = "bgp" }
	const long = math.MaxUint32
	for why, c := range map[string]struct{ holds, broken []change }{
		"an AS number is from 1 to 4294967295": {
			[]change{asn(1, 1, 0), asn(long, long, long)},
			[]change{asn(0, 1, 0), asn(-1, 1, 0), asn(1, -1, 0), asn(1, 1, -1), asn(long+1, 1, 0), asn(1, long+1, 0), asn(1, 1, long+1)},
		},
		"set one of peerASN and dynamicASN":    {[]change{dynamic(0, "external")}, []change{dynamic(0, ""), dynamic(1, "external")}},
		"dynamicASN is internal or external":   {[]change{dynamic(0, "internal")}, []change{dynamic(0, "Internal")}},
		"set one of peerAddress and interface": {[]change{by("eth0", "")}, []change{by("", ""), by("eth0", "192.0.2.1")}},
		"is no IP address": {
			[]change{by("", "::ffff:192.0.2.1"), from("2001:db8::1", "2001:db8::2")},
			[]change{by("", "192.0.2.256"), by("", "192.0.2.1/32"), by("", "router.example"), from("192.0.2.1", "x")},
		},
		"is no name of an interface": {[]change{by("bond0.123456789", "")}, []change{by("bond0.1234567890", ""), by("eth0/1", ""), by("eth 0", "")}},
		"an unnumbered session runs between": {nil, []change{
			with(by("eth0", ""), hops), with(by("eth0", ""), func(s *v1alpha1.BGPPeerSpec) { s.SrcAddress = "192.0.2.2" })}},
		"a link-local peerAddress needs a zone": {[]change{by("", "fe80::1%eth0"), by("", "169.254.0.1")}, []change{by("", "fe80::1")}},
		"are of different families":             {[]change{from("192.0.2.1", "::ffff:192.0.2.2")}, []change{from("192.0.2.1", "2001:db8::2"), from("2001:db8::1", "192.0.2.2")}},
		"does not have the form of an IPv4":     {[]change{router("192.0.2.9")}, []change{router("0.0.0.0"), router("2001:db8::1"), router("9")}},
		"peerPort is from 1 to 65535":           {[]change{port(1), port(65535)}, []change{port(-1), port(65536)}},
		"holdTime is 0s or from 3s to 65535s":   {[]change{hold(0), hold(3), hold(65535)}, []change{hold(2.9), hold(65535.1), hold(-1)}},
		"keepaliveTime is no longer than holdTime": {
			[]change{keepalive(65535), both(3, 3), both(0, 0)}, []change{keepalive(-1), keepalive(65535.1), both(3.1, 3), both(1, 0)}},
		"connectTime is from 1s to 65535s":         {[]change{connect(65535)}, []change{connect(-1), connect(65535.1)}},
		"set password or passwordSecret, not both": {[]change{password(1), secret}, []change{with(password(1), secret)}},
		"password is at most 80 bytes":             {[]change{password(80)}, []change{password(81)}},
		"ttlSecurity accepts direct neighbours":    {[]change{ttl, hops}, []change{with(ttl, hops)}},
	} {
		for i, change := range c.holds {
			if _, got := session(t, "10.0.0.1", change); got != "" {
				t.Errorf("%s: %d holds, and is refused: %s", why, i, got)
			}
		}
		for i, change := range c.broken {
			if _, got := session(t, "10.0.0.1", change); !strings.Contains(got, why) {
				t.Errorf("%s: %d is broken: %q", why, i, got)
			}
		}
	}
}

// TestWhatASessionIs when its BGPPeer leaves it open.
func TestWhatASessionIs(t *testing.T) {
	s, _ := session(t, "2001:db8::5", func(s *v1alpha1.BGPPeerSpec) {
		s.Address, s.SrcAddress, s.KeepaliveTime = "::ffff:192.0.2.1", "::ffff:192.0.2.2", seconds(2)
	})
	if s.Peer != netip.MustParseAddr("192.0.2.1") || s.Source != netip.MustParseAddr("192.0.2.2") || !s.IPv4 || s.IPv6 || s.Port != 179 || s.Hold != 6*time.Second {
		t.Errorf("%+v", s)
	}
	if first := netip.MustParseAddr("5.53.221.147"); s.RouterID != first {
		t.Errorf("of a node without an IPv4 address it is %v, wanted %v, which is FNV-1a of its name", s.RouterID, first)
	}
	if s, _ = session(t, "10.0.0.1", func(s *v1alpha1.BGPPeerSpec) { s.KeepaliveTime = seconds(0.5) }); s.Hold != 3*time.Second || s.RouterID != netip.MustParseAddr("10.0.0.1") {
		t.Errorf("%+v", s)
	}
}

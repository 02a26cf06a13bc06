package announce

import (
	"cmp"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// printBGP shows what a node tells routers, a line for each session and route.
func printBGP(w io.Writer, me string, b *BGP) {
	if b.Draining && len(b.Sessions) > 0 {
		fmt.Fprintf(w, "%s drains its routes\n", me)
	}
	if b.Barred != "" && len(b.Sessions) > 0 {
		fmt.Fprintf(w, "%s announces no route: %s\n", me, b.Barred)
	}
	for i := range b.Sessions {
		s := &b.Sessions[i]
		fmt.Fprintf(w, "%s holds session %s\n", me, s)
		for _, r := range s.Routes {
			fmt.Fprintf(w, "  %s%s\n", r.Prefix, r.Attributes)
		}
	}
}

// String lists what differs from the usual.
func (s *Session) String() string {
	kin := map[Kinship]string{Exactly: fmt.Sprint("AS", s.PeerASN), Internal: "our AS", External: "any other AS"}[s.Kinship]
	var b strings.Builder
	at := cmp.Or(s.Interface, netip.AddrPortFrom(s.Peer, s.Port).String())
	fmt.Fprintf(&b, "%s with %s at %s, as AS%d, router ID %s, hold %v", s.Name, kin, at, s.ASN, s.RouterID, s.Hold)
	families := map[[2]bool]string{{true, false}: "IPv4", {false, true}: "IPv6", {true, true}: "IPv4 and IPv6"}
	fmt.Fprintf(&b, ", %s", families[[2]bool{s.IPv4, s.IPv6}])
	for _, has := range []struct {
		it   bool
		text string
	}{
		{s.Keepalive > 0, fmt.Sprint("keepalive ", s.Keepalive)}, {s.Connect > 0, fmt.Sprint("connect ", s.Connect)},
		{s.Source.IsValid(), "from " + s.Source.String()}, {s.VRF != "", "in VRF " + s.VRF},
		{s.Password != "", "with a password"}, {s.PasswordSecret != "", "with the password in Secret " + s.PasswordSecret},
		{s.MultiHop, "multihop"}, {s.TTLSecurity, "TTL security"}, {s.Passive, "passive"}, {s.GracefulRestart, "graceful restart"},
	} {
		if has.it {
			b.WriteString(", " + has.text)
		}
	}
	if s.BFD != nil {
		fmt.Fprintf(&b, ", BFD %+v", *s.BFD)
	}
	return b.String()
}

func (a *Attributes) String() string {
	var b strings.Builder
	if a.LocalPref != 0 {
		fmt.Fprintf(&b, " localPref %d", a.LocalPref)
	}
	if a.Prepend != 0 {
		fmt.Fprintf(&b, " prepended %d", a.Prepend)
	}
	for _, c := range a.Communities {
		fmt.Fprintf(&b, " %d:%d", c>>16, c&0xffff)
	}
	for _, c := range a.LargeCommunities {
		fmt.Fprintf(&b, " large:%d:%d:%d", c.Global, c.Local1, c.Local2)
	}
	return b.String()
}

// checkReach compares what a plan tells with what others say that its node does.
func checkReach(t *testing.T, r *Reach, me string, p *Plan) {
	t.Helper()
	told := map[string]map[netip.Addr]bool{}
	for _, s := range p.BGP.Sessions {
		told[s.Name] = map[netip.Addr]bool{}
		for _, route := range s.Routes {
			for _, h := range r.k.holdings {
				if !p.BGP.Draining && route.Prefix.Contains(h.addr) && (route.Prefix.IsSingleIP() || h.users[0].local == nil) {
					told[s.Name][h.addr] = true
				}
			}
		}
	}
	for _, h := range r.k.holdings {
		for _, s := range p.BGP.Sessions {
			if says := slices.Contains(r.Of(h.addr)[me], s.Name); says != told[s.Name][h.addr] {
				t.Errorf("%s tells %s of %s: %v; others say %v", me, s.Name, h.addr, told[s.Name][h.addr], says)
			}
		}
	}
}

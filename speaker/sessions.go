package speaker

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
	"quayside.io/speaker/bgp"
	"quayside.io/speaker/kubeproxy"
	"quayside.io/speaker/ownership"
)

const (
	// restartTime is how long routers keep the routes of a speaker that restarts
	// (RFC 4724), FRR's default.
	restartTime = 120 * time.Second
	// leaveWithin is how long the drain of routes takes at most when the speaker stops.
	leaveWithin = 5 * time.Second
	// grantedWithin is how long a speaker that has started counts as not ready because it may
	// not read a password: a rollout shall not end the sessions of one node after the other.
	grantedWithin = 2 * time.Minute
)

// setSessions passes the BGP sessions of a plan to the drivers. They need complete caches,
// but neither gossip nor raw sockets.
func (s *Speaker) setSessions(w ownership.World, plan *announce.BGP) {
	if !w.Synced {
		return // an incomplete cluster would withdraw routes
	}
	s.referSecrets(plan.Sessions)
	s.links.Set(interfacesOf(plan.Sessions))
	sessions, doubts := located(plan.Sessions, s.links.State())
	// A speaker that only restarts drains when it stops, if its routers do not keep the
	// routes (RFC 4724); the plan's drain is for a node that is being drained.
	goes := announce.Drained(w.Cluster, s.opts.NodeName, s.opts.HandOverOnCordon)
	want := &bgp.Want{Draining: plan.Draining && goes}
	s.unread = ""
	lists := map[*announce.Route][]bgp.Route{}
	for i := range sessions {
		p := &sessions[i]
		if w.Proxy.Behind && p.GracefulRestart {
			// It would begin without routes, and so end those that the router has kept while
			// we restarted (RFC 4724 section 4.1). Only after a start is kube-proxy behind.
			continue
		}
		password, why := s.passwordNow(w.Cluster, p)
		if !p.Peer.IsValid() {
			why = cmp.Or(why, doubts[p.Name])
		}
		session := bgp.Session{Name: p.Name, Settings: settings(p, password), Refused: why}
		if len(p.Routes) > 0 {
			list := lists[&p.Routes[0]]
			if len(list) != len(p.Routes) {
				list = routes(p.Routes)
				lists[&p.Routes[0]] = list
			}
			session.Routes = list
		}
		want.Sessions = append(want.Sessions, session)
	}
	s.routers, s.doubts = want, doubts
	s.bfd.Set(guards(sessions, w.Link.Interfaces))
	s.bgp.Set(guarded(want, s.bfd.State()))
	s.drains = goes
}

// setChecks passes the health checks of a plan to the driver that asks kube-proxy.
func (s *Speaker) setChecks(checks map[netip.AddrPort]snapshot.Key) {
	questions := make(map[netip.AddrPort]kubeproxy.Service, len(checks))
	for at, about := range checks {
		questions[at] = kubeproxy.Service(about)
	}
	s.health.Set(questions)
}

// settings are the settings of a session for the driver.
func settings(p *announce.Session, password string) bgp.Settings {
	set := bgp.Settings{
		Peer: netip.AddrPortFrom(p.Peer, p.Port), ASN: p.ASN, PeerASN: p.PeerASN, Kinship: bgp.Kinship(p.Kinship),
		RouterID: p.RouterID, Source: p.Source, Device: p.VRF, Hold: p.Hold, Keepalive: p.Keepalive, Connect: p.Connect,
		Password: password, MultiHop: p.MultiHop, TTLSecurity: p.TTLSecurity, Passive: p.Passive, IPv4: p.IPv4, IPv6: p.IPv6,
	}
	if p.GracefulRestart {
		set.Restart = restartTime
	}
	return set
}

func routes(in []announce.Route) []bgp.Route {
	known := map[*announce.Attributes]*bgp.Attributes{}
	out := make([]bgp.Route, len(in))
	for i, r := range in {
		a := known[r.Attributes]
		if a == nil {
			a = &bgp.Attributes{LocalPref: r.Attributes.LocalPref, Communities: r.Attributes.Communities, Prepend: r.Attributes.Prepend}
			for _, c := range r.Attributes.LargeCommunities {
				a.LargeCommunities = append(a.LargeCommunities, bgp.LargeCommunity(c))
			}
			known[r.Attributes] = a
		}
		out[i] = bgp.Route{Prefix: r.Prefix, Attributes: a}
	}
	return out
}

// passwordNow returns the password of a session, or why there is none. While a Secret is
// named that is not read yet, as the right to read it is on its way, a session keeps the
// password that it has.
func (s *Speaker) passwordNow(c *snapshot.Cluster, p *announce.Session) (password, why string) {
	key := snapshot.Key{Namespace: s.opts.Namespace, Name: p.PasswordSecret}
	if _, known := c.Secrets.Get(key); p.PasswordSecret == "" || known || c.Reach(snapshot.Secret).Covers(key) {
		return s.password(c, p)
	}
	s.unread = fmt.Sprintf("Secret %s with the password could not be read by this account, or not yet", key)
	for i := range s.routers.Sessions {
		was := &s.routers.Sessions[i]
		if was.Name == p.Name && was.Settings.Peer.Addr() == p.Peer && was.Settings.Password != "" {
			return was.Settings.Password, ""
		}
	}
	return "", s.unread
}

// password returns the password of a session, or why there is none.
func (s *Speaker) password(c *snapshot.Cluster, p *announce.Session) (password, why string) {
	if p.PasswordSecret == "" {
		return p.Password, ""
	}
	key := snapshot.Key{Namespace: s.opts.Namespace, Name: p.PasswordSecret}
	secret, ok := c.Secrets.Get(key)
	switch {
	case !ok:
		return "", fmt.Sprintf("Secret %s with the password does not exist", key)
	case secret.Type != corev1.SecretTypeBasicAuth:
		return "", fmt.Sprintf("Secret %s is of type %q: must be %q", key, secret.Type, corev1.SecretTypeBasicAuth)
	case len(secret.Data[corev1.BasicAuthPasswordKey]) == 0:
		return "", fmt.Sprintf("Secret %s has no %q", key, corev1.BasicAuthPasswordKey)
	}
	return string(secret.Data[corev1.BasicAuthPasswordKey]), ""
}

// referSecrets asks for the Secrets with passwords.
func (s *Speaker) referSecrets(sessions []announce.Session) {
	keys := []snapshot.Key{} // not nil, which means that none have been asked for
	for i := range sessions {
		if name := sessions[i].PasswordSecret; name != "" {
			keys = append(keys, snapshot.Key{Namespace: s.opts.Namespace, Name: name})
		}
	}
	if s.secrets == nil || !slices.Equal(keys, s.secrets) {
		s.secrets = keys
		s.opts.Source.Refer(snapshot.Secret, keys)
	}
}

// leaveRouters ends the sessions: for good if the node is being drained, else for a restart.
func (s *Speaker) leaveRouters(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, leaveWithin)
	defer cancel()
	words := "the speaker of node " + s.opts.NodeName + " ends"
	if s.drains {
		words = "node " + s.opts.NodeName + " goes"
	}
	if err := s.bgp.Leave(ctx, words, !s.drains); err != nil && ctx.Err() != nil {
		s.opts.Log.Warn("routers were not told everything in time", "error", err)
	}
}

package speaker

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/manifest"
	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
	"quayside.io/speaker/bgp"
	"quayside.io/speaker/ownership"
)

func TestPasswordsComeFromTheNamespaceOfQuayside(t *testing.T) {
	secrets := `
{apiVersion: v1, kind: Secret, metadata: {name: good, namespace: quayside-system}, type: kubernetes.io/basic-auth, data: {password: c2VjcmV0}}
---
{apiVersion: v1, kind: Secret, metadata: {name: opaque, namespace: quayside-system}, type: Opaque, data: {password: c2VjcmV0}}
---
{apiVersion: v1, kind: Secret, metadata: {name: empty, namespace: quayside-system}, type: kubernetes.io/basic-auth, data: {username: c2VjcmV0}}
---
{apiVersion: v1, kind: Secret, metadata: {name: elsewhere, namespace: default}, type: kubernetes.io/basic-auth, data: {password: c2VjcmV0}}
`
	c := snapshot.Of(manifest.Decode("secrets.yaml", []byte(secrets)).Objects...)
	s := &Speaker{opts: Options{Namespace: "quayside-system"}}
	for name, want := range map[string]struct{ password, why string }{
		"good":      {"secret", ""},
		"opaque":    {"", "must be"},
		"empty":     {"", `has no "password"`},
		"elsewhere": {"", "does not exist"},
	} {
		password, why := s.password(c, &announce.Session{PasswordSecret: name})
		if password != want.password || !strings.Contains(why, want.why) || (why == "") != (want.why == "") {
			t.Errorf("%s: %q, %q", name, password, why)
		}
	}
	if password, why := s.password(c, &announce.Session{Password: "plain"}); password != "plain" || why != "" {
		t.Errorf("%q, %q", password, why)
	}
	if _, why := s.password(c, &announce.Session{}); why != "" {
		t.Error(why)
	}
}

// While the right to read a Secret is on its way, no session loses the password that it has,
// and none comes up without one; and a speaker that has just started is not ready, since a
// rollout would go on to the next.
func TestSessionsSurviveUntilAPasswordMayBeRead(t *testing.T) {
	s, _ := lone(t)
	s.opts.Namespace = "quayside-system"
	secret := func(name, password string) snapshot.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "quayside-system", Name: name}, Type: corev1.SecretTypeBasicAuth, Data: map[string][]byte{"password": []byte(password)}}
	}
	unread := snapshot.Unread()
	read := unread.With(secret("old", "one")).WithReach(snapshot.Secret, snapshot.Key{Namespace: "quayside-system", Name: "old"})
	all := read.With(secret("new", "two")).WithReach(snapshot.Secret, snapshot.Key{Namespace: "quayside-system", Name: "new"})
	none := all.Without(snapshot.Secret, snapshot.Key{Namespace: "quayside-system", Name: "new"})
	router, other := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	for _, step := range []struct {
		name          string
		c             *snapshot.Cluster
		peer          netip.Addr
		inline, named string
		password      string
		refused       bool
		ready         bool
	}{
		{"it has just started", unread, router, "", "old", "", true, false},
		{"it may read it", read, router, "", "old", "one", false, true},
		{"another is named", read, router, "", "new", "one", false, false},
		{"of another router", read, other, "", "new", "", true, false},
		{"that may be read", all, router, "", "new", "two", false, true},
		{"the right has gone", all, router, "", "new", "two", false, true},
		{"the Secret has gone", none, router, "", "new", "", true, true},
		{"there was none", all, router, "", "", "", false, true},
		{"and now one is named", read, router, "", "new", "", true, false},
		{"it is in the BGPPeer", read, router, "plain", "", "plain", false, true},
		{"and moves into a Secret", read, router, "", "new", "plain", false, false},
		{"which may be read", all, router, "", "new", "two", false, true},
	} {
		s.setSessions(ownership.World{Cluster: step.c, Synced: true}, &announce.BGP{Sessions: []announce.Session{
			{Name: "tor", Peer: step.peer, Port: 179, Password: step.inline, PasswordSecret: step.named}}})
		got := s.routers.Sessions[0]
		if got.Settings.Password != step.password || (got.Refused != "") != step.refused {
			t.Errorf("%s: password %q, refused %q", step.name, got.Settings.Password, got.Refused)
		}
		s.lastStep.Store(&stepState{unread: s.unread})
		if err := s.Ready(); (err == nil) != step.ready {
			t.Errorf("%s: ready: %v", step.name, err)
		}
	}
	s.lastStep.Store(&stepState{unread: "Secret quayside-system/never"})
	s.began = s.began.Add(-grantedWithin)
	if err := s.Ready(); err != nil {
		t.Errorf("it is not ready forever: %v", err)
	}
}

// A router that keeps the routes of a speaker that restarts hears of it once there are
// some: an End-of-RIB before the first of them would end all.
func TestSessionsThatRoutersKeepRoutesForWaitForKubeProxy(t *testing.T) {
	s, _ := lone(t)
	plan := func() *announce.BGP {
		return &announce.BGP{Sessions: []announce.Session{
			{Name: "keeps", Peer: netip.MustParseAddr("192.0.2.1"), Port: 179, GracefulRestart: true},
			{Name: "forgets", Peer: netip.MustParseAddr("192.0.2.2"), Port: 179},
		}}
	}
	for _, step := range []struct {
		behind bool
		want   string
	}{{true, "forgets"}, {false, "keeps forgets"}} {
		s.setSessions(ownership.World{Cluster: snapshot.Unread(), Synced: true, Proxy: ownership.KubeProxy{Behind: step.behind}}, plan())
		var names []string
		for _, session := range s.routers.Sessions {
			names = append(names, session.Name)
		}
		if got := strings.Join(names, " "); got != step.want {
			t.Errorf("kube-proxy behind: %v: sessions %q, want %q", step.behind, got, step.want)
		}
	}
}

func TestSessionsInTheDriversWords(t *testing.T) {
	p := &announce.Session{
		Name: "r", Peer: netip.MustParseAddr("192.0.2.1"), Port: 179, ASN: 64500, Kinship: announce.External,
		Hold: 3 * time.Second, GracefulRestart: true, VRF: "red", IPv6: true,
	}
	set := settings(p, "secret")
	if set.Peer.String() != "192.0.2.1:179" || set.Kinship != bgp.External || set.Restart != restartTime || set.Device != "red" || set.Password != "secret" || set.IPv4 || !set.IPv6 {
		t.Errorf("%+v", set)
	}
	if bgp.Exactly != bgp.Kinship(announce.Exactly) || bgp.Internal != bgp.Kinship(announce.Internal) || bgp.External != bgp.Kinship(announce.External) {
		t.Error("two packages order the kinds of peers differently")
	}
	shared := &announce.Attributes{LocalPref: 7, Communities: []uint32{1}, LargeCommunities: []announce.LargeCommunity{{Global: 1, Local1: 2, Local2: 3}}, Prepend: 2}
	out := routes([]announce.Route{{Prefix: netip.MustParsePrefix("192.0.2.1/32"), Attributes: shared}, {Prefix: netip.MustParsePrefix("192.0.2.2/32"), Attributes: shared}})
	a := out[0].Attributes
	if out[1].Attributes != a || a.LocalPref != 7 || a.Prepend != 2 || a.Communities[0] != 1 || a.LargeCommunities[0] != (bgp.LargeCommunity{Global: 1, Local1: 2, Local2: 3}) {
		t.Errorf("%+v", out)
	}
}

// TestSessionsAreNoEdge: they are written, at the quiet pace.
func TestSessionsAreNoEdge(t *testing.T) {
	at := func(sec int64) *metav1.Time { m := metav1.NewTime(time.Unix(sec, 0)); return &m }
	status := func(s v1alpha1.BGPSession) *v1alpha1.SpeakerStatusStatus {
		return &v1alpha1.SpeakerStatusStatus{BGPSessions: []v1alpha1.BGPSession{s}}
	}
	one := v1alpha1.BGPSession{Peer: "r", State: "Established", Since: at(5), Advertised: 3}
	utc := one
	inUTC := metav1.NewTime(time.Unix(5, 0).UTC())
	utc.Since = &inUTC
	if !equal(status(one), status(utc)) {
		t.Error("the same time in another zone is a change")
	}
	for _, change := range []func(*v1alpha1.BGPSession){
		func(s *v1alpha1.BGPSession) { s.State = "Active" }, func(s *v1alpha1.BGPSession) { s.Since = at(6) },
		func(s *v1alpha1.BGPSession) { s.Advertised = 4 }, func(s *v1alpha1.BGPSession) { s.LastError = "reset" },
	} {
		other := one
		change(&other)
		if equal(status(one), status(other)) || isEdge(status(one), status(other)) {
			t.Errorf("%+v: no change, or an edge", other)
		}
	}
}

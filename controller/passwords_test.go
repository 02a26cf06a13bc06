package controller

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
)

// bookkeeper keeps what it was last told to grant, and refuses all of it for a reason, if any.
type bookkeeper struct {
	Granter
	granted []cluster.Grant
	told    int
	why     string
}

func (b *bookkeeper) Set(grants []cluster.Grant) { b.granted, b.told = grants, b.told+1 }

func (b *bookkeeper) Refused() map[string]string {
	if b.why == "" {
		return nil
	}
	return map[string]string{"system": b.why}
}

func peerNaming(name, secret string) *v1alpha1.BGPPeer {
	p := &v1alpha1.BGPPeer{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.PasswordSecret.Name = secret
	return p
}

// The speakers are given what BGPPeers name, each once, in Quayside's namespace whatever a
// BGPPeer says, and nothing of Quayside's own: who names that is told.
func TestSpeakersAreGivenWhatPeersName(t *testing.T) {
	elsewhere := peerNaming("elsewhere", "far")
	elsewhere.Spec.PasswordSecret.Namespace = "metallb-system"
	c := snapshot.Unread().With(
		peerNaming("right", "tor"), peerNaming("left", "tor"), peerNaming("plain", ""), elsewhere, peerNaming("bold", "members"))
	to := &bookkeeper{}
	p := passwords{options: &PasswordOptions{To: to, Namespace: "system", Never: func(k snapshot.Key) bool {
		return k == snapshot.Key{Namespace: "system", Name: "members"}
	}}}
	told := p.step(c)
	if diff := cmp.Diff([]cluster.Grant{{Namespace: "system", Secrets: []string{"far", "tor"}}}, to.granted); diff != "" {
		t.Errorf("granted (-want +got):\n%s", diff)
	}
	if len(told) != 1 || told[0].Object.String() != "BGPPeer bold" || told[0].Reason != reasonNotGranted || !strings.Contains(told[0].Message, "Secret system/members belongs to Quayside") {
		t.Errorf("told: %v", told)
	}

	p.step(c.With(ingress("shop", "quayside", nil)))
	if to.told != 1 {
		t.Errorf("it is told %d times what to grant, although no BGPPeer has changed", to.told)
	}
	for _, name := range []string{"right", "left", "plain", "elsewhere"} {
		c = c.Without(snapshot.BGPPeer, snapshot.Key{Name: name})
	}
	if p.step(c); to.told != 2 || to.granted != nil {
		t.Errorf("no BGPPeer names anything that is granted, yet this is: %v", to.granted)
	}
}

// While it cannot be granted, each BGPPeer with a password says why, and no other; and no
// longer than that.
func TestPasswordsThatCannotBeGrantedAreTold(t *testing.T) {
	c := snapshot.Unread().With(peerNaming("left", "left"), peerNaming("plain", ""), peerNaming("right", "right"))
	to := &bookkeeper{}
	p := passwords{options: &PasswordOptions{To: to, Namespace: "system"}}
	for _, why := range []string{"", "role system/speaker-references is not ours", "forbidden", ""} {
		to.why = why
		var about []string
		for _, told := range p.step(c) {
			about = append(about, told.Object.String())
			if told.Reason != reasonNotGranted || !strings.HasSuffix(told.Message, ": "+why) {
				t.Errorf("%q: %v", why, told)
			}
		}
		slices.Sort(about)
		if want := []string{"BGPPeer left", "BGPPeer right"}; (why != "") != slices.Equal(about, want) || why == "" && len(about) > 0 {
			t.Errorf("%q: told are %q", why, about)
		}
	}
	if to.told != 1 {
		t.Errorf("it is told %d times what to grant, although no BGPPeer has changed", to.told)
	}
}

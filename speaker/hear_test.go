package speaker

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
	"quayside.io/speaker/l2"
)

// filteredLAN answers for some addresses, by the MAC of who does.
type filteredLAN struct {
	LAN
	answers map[netip.Addr]string
	asked   []l2.Question
	err     error
}

func (l *filteredLAN) Listen(_ context.Context, questions []l2.Question, _ l2.Timing) (map[netip.Addr]l2.Found, bool, error) {
	l.asked = questions
	found := map[netip.Addr]l2.Found{}
	for _, q := range questions {
		if mac := l.answers[q.Address]; mac != "" {
			found[q.Address] = l2.Found{Interface: q.Interfaces[0], MAC: mac, Answered: true}
		}
	}
	return found, len(found) > 0, l.err
}

// theirs is what node n1 says: it announces addresses, on those interfaces alone.
func theirs(on []string, addresses ...string) (*v1alpha1.SpeakerStatus, *audible) {
	status := &v1alpha1.SpeakerStatus{}
	status.Name = "n1"
	for _, a := range addresses {
		status.Status.Announcing = append(status.Status.Announcing, v1alpha1.Announcing{Service: "default/web", Address: a, Protocol: announce.ProtocolL2, Interfaces: on})
	}
	at := func(name, mac string, prefixes ...string) announce.Interface {
		i := announce.Interface{Name: name, MAC: mac, Up: true}
		for _, p := range prefixes {
			i.Prefixes = append(i.Prefixes, netip.MustParsePrefix(p))
		}
		return i
	}
	return status, &audible{
		watch: []string{"n0", "n1"},
		facts: map[string]announce.Facts{"n1": {Interfaces: []announce.Interface{at("mgmt", "02:00:00:00:01:01", "172.16.0.1/24"), at("lan", "02:00:00:00:01:02", "10.0.0.1/24")}}},
		own:   []announce.Interface{at("eth0", "02:00:00:00:02:01", "172.16.0.2/24"), at("eth1", "02:00:00:00:02:02", "10.0.0.2/24")},
		owner: func(netip.Addr) string { return "n1" },
	}
}

// An address is unheard if its node announces it on a LAN where it answers for itself, and
// nobody answers for the address, three times in a row; and no longer than that.
func TestHearing(t *testing.T) {
	vip, host := netip.MustParseAddr("10.0.0.240"), netip.MustParseAddr("10.0.0.1")
	const mac = "02:00:00:00:01:02"
	now := time.Now()
	for name, c := range map[string]struct {
		answers map[netip.Addr]string
		change  func(*audible, *v1alpha1.SpeakerStatus, *filteredLAN)
		want    int
	}{
		"dropped on the way":             {answers: map[netip.Addr]string{host: mac}, want: 1},
		"answered":                       {answers: map[netip.Addr]string{host: mac, vip: mac}},
		"answered by somebody":           {answers: map[netip.Addr]string{host: mac, vip: "02:00:00:00:09:09"}},
		"the LAN answers nothing":        {answers: map[netip.Addr]string{}},
		"another has the node's address": {answers: map[netip.Addr]string{host: "02:00:00:00:09:09"}},
		"the LAN cannot be asked":        {answers: map[netip.Addr]string{host: mac}, change: func(_ *audible, _ *v1alpha1.SpeakerStatus, l *filteredLAN) { l.err = errors.New("no interface") }},
		"announced on another LAN": {answers: map[netip.Addr]string{host: mac}, change: func(k *audible, said *v1alpha1.SpeakerStatus, _ *filteredLAN) {
			said.Status.Announcing[0].Interfaces = []string{"storage"}
		}},
		"another node owns it by now": {answers: map[netip.Addr]string{host: mac}, change: func(k *audible, said *v1alpha1.SpeakerStatus, _ *filteredLAN) {
			k.owner = func(netip.Addr) string { return "n2" }
		}},
		"its node leaves": {answers: map[netip.Addr]string{host: mac}, change: func(k *audible, said *v1alpha1.SpeakerStatus, _ *filteredLAN) {
			k.facts["n1"] = announce.Facts{Leaving: true}
		}},
		"this node is deaf there":      {answers: map[netip.Addr]string{host: mac}, change: func(k *audible, said *v1alpha1.SpeakerStatus, _ *filteredLAN) { k.own[1].Deaf = true }},
		"its node's interface is down": {answers: map[netip.Addr]string{host: mac}, change: func(k *audible, said *v1alpha1.SpeakerStatus, _ *filteredLAN) { k.facts["n1"].Interfaces[1].Up = false }},
		"not of layer 2": {answers: map[netip.Addr]string{host: mac}, change: func(k *audible, said *v1alpha1.SpeakerStatus, _ *filteredLAN) {
			said.Status.Announcing[0].Protocol = "bgp"
		}},
		"no address": {answers: map[netip.Addr]string{host: mac}, change: func(k *audible, said *v1alpha1.SpeakerStatus, _ *filteredLAN) {
			said.Status.Announcing[0].Address = "nowhere"
		}},
		"of two Services, and told once": {answers: map[netip.Addr]string{host: mac}, change: func(k *audible, said *v1alpha1.SpeakerStatus, _ *filteredLAN) {
			said.Status.Announcing = append(said.Status.Announcing, said.Status.Announcing[0])
		}, want: 1},
		"on every interface of its node": {answers: map[netip.Addr]string{host: mac}, change: func(k *audible, said *v1alpha1.SpeakerStatus, _ *filteredLAN) {
			said.Status.Announcing[0].Interfaces = nil
		}, want: 1},
		"in no subnet of a LAN": {answers: map[netip.Addr]string{netip.MustParseAddr("172.16.0.1"): "02:00:00:00:01:01"}, change: func(k *audible, said *v1alpha1.SpeakerStatus, _ *filteredLAN) {
			said.Status.Announcing[0].Interfaces, k.facts["n1"].Interfaces[1].Prefixes = nil, nil
		}, want: 1},
	} {
		lan := &filteredLAN{answers: c.answers}
		said, k := theirs([]string{"lan"}, vip.String())
		if c.change != nil {
			c.change(k, said, lan)
		}
		h := newHearing(lan, func() *snapshot.Cluster { return snapshot.Of(said) })
		h.known.Store(k)
		for i := range unheardAfter {
			if len(h.Unheard()) > 0 {
				t.Errorf("%s: after %d questions %v", name, i, h.Unheard())
			}
			h.round(t.Context(), now)
		}
		if got := h.Unheard(); len(got) != c.want {
			t.Errorf("%s: %v", name, got)
		}
		if c.want == 0 {
			continue
		}
		<-h.Changed()
		lan.answers[vip] = mac
		if h.round(t.Context(), now); len(h.Unheard()) > 0 {
			t.Errorf("%s: it is heard again, and %v", name, h.Unheard())
		}
		<-h.Changed()
	}
}

// Of many addresses those are asked for first that are in doubt, then those that were not
// asked for the longest.
func TestHearingOfMany(t *testing.T) {
	var all []string
	for i := range 3 * hearAtOnce {
		all = append(all, fmt.Sprint("10.0.0.", 100+i))
	}
	lan := &filteredLAN{answers: map[netip.Addr]string{netip.MustParseAddr("10.0.0.1"): "02:00:00:00:01:02"}}
	for _, a := range all[1:] {
		lan.answers[netip.MustParseAddr(a)] = "02:00:00:00:01:02"
	}
	said, k := theirs(nil, all...)
	h := newHearing(lan, func() *snapshot.Cluster { return snapshot.Of(said) })
	if pause := h.round(t.Context(), time.Now()); pause != hearEvery || lan.asked != nil {
		t.Errorf("before anything is known: pause %v, asked %v", pause, lan.asked)
	}
	h.known.Store(k)
	met := map[netip.Addr]int{}
	for i := range 5 {
		pause := h.round(t.Context(), time.Now().Add(time.Duration(i)*time.Second))
		for _, q := range lan.asked[1:] {
			met[q.Address]++
		}
		if quick := len(met) < len(all) || i < unheardAfter-1; quick != (pause == hearAgain) {
			t.Errorf("round %d: pause %v, %d of %d are known", i, pause, len(met), len(all))
		}
	}
	if len(met) != len(all) || met[netip.MustParseAddr(all[0])] != unheardAfter {
		t.Errorf("asked for %v", met)
	}
	said, _ = theirs(nil, all[1:]...)
	if h.round(t.Context(), time.Now()); len(h.Unheard()) > 0 || len(h.asked) != len(all)-1 {
		t.Errorf("it is not announced any more: %v, %d are remembered", h.Unheard(), len(h.asked))
	}
}

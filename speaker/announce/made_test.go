package announce

import (
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
)

// Whatever happens to endpoints and claims, and sometimes to something else: a plan made of the one
// before is the one that is made of nothing. It goes on from there, as a speaker does.
func TestAPlanMadeOfTheOneBeforeIsTheOneMadeAnew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := genWorld(t)
		w.objects = append(w.objects, router(t)...)
		c := snapshot.Of(w.objects...)
		opts := Options{ExternalIPs: true}
		now, view := epoch0(), w.view
		plan := Compile(c, "n0", view, now, opts)
		view.Before = Made{plan, c}
		for range rapid.IntRange(1, 8).Draw(t, "changes") {
			for range rapid.IntRange(1, 3).Draw(t, "at once") {
				c = change(t, c, len(w.nodes))
			}
			if view.Before.StillValid(c) && rapid.Bool().Draw(t, "no step is taken") {
				continue
			}
			now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			live(t, &view, view.Before.Plan, now)
			anew := view
			anew.Before = Made{}
			want := Compile(c, "n0", anew, now, opts)
			for range 2 { // what the first does must not show in the one before
				got := Compile(c, "n0", view, now, opts)
				if !isSame(got, want) || !reflect.DeepEqual(got.reading, want.reading) {
					t.Fatalf("made of the one before:\n%+v\nand anew:\n%+v", got, want)
				}
				plan = got
			}
			view.Before = Made{plan, c}
		}
	})
}

// isSame reports whether two plans say the same, whatever they keep of how they were made.
func isSame(a, b *Plan) bool {
	same := *b
	same.reading, same.made, same.L2.Owners = a.reading, a.made, a.L2.Owners
	return reflect.DeepEqual(a, &same) && slices.Equal(ownersOf(a), ownersOf(b))
}

// ownersOf are the addresses with their owners, in order.
func ownersOf(p *Plan) (text []string) {
	for a, owner := range p.L2.Owners.All() {
		text = append(text, a.String()+" "+owner)
		if p.L2.Owners.Of(a) != owner || !p.L2.Owners.Has(a) {
			text = append(text, "is "+p.L2.Owners.Of(a)+" if asked for alone")
		}
	}
	return text
}

// live is what a speaker remembers and hears from one plan to the next.
func live(t *rapid.T, v *View, p *Plan, now time.Time) {
	v.Since, v.Others = p.L2.Since, p.BGP.Others
	v.HandingOver = map[netip.Addr]time.Time{}
	for a, answer := range p.L2.Answers {
		if answer.HandOver != "" {
			v.HandingOver[a] = now.Add(-time.Second)
		}
	}
	v.Cut, v.Refused, v.Unserved = map[netip.Addr]struct{}{}, map[netip.Addr]Refusal{}, map[netip.AddrPort]time.Time{}
	for a := range p.L2.Owners.All() {
		switch rapid.IntRange(0, 9).Draw(t, "happens to "+a.String()) {
		case 0:
			v.Cut[a] = struct{}{}
		case 1:
			v.Refused[a] = Refusal{Node: "n1"}
		case 2:
			v.Refused[a] = Refusal{MAC: "02:00:00:00:00:99"}
		}
	}
	for at := range p.Checks {
		v.Unserved[at] = now.Add(-time.Minute)
	}
	if rapid.IntRange(0, 2).Draw(t, "somebody claims") == 0 {
		v.Claims = maps.Clone(v.Claims)
		for _, take := range p.L2.Take {
			v.Claims[take.Address] = Claim{take.Epoch, "n0"}
		}
		for range rapid.IntRange(0, 3).Draw(t, "others who do") {
			a := netip.AddrFrom4([4]byte{10, 0, 0, byte(100 + rapid.IntRange(0, 12).Draw(t, "address"))})
			if rapid.IntRange(0, 5).Draw(t, "forgotten") == 0 {
				delete(v.Claims, a)
			} else {
				v.Claims[a] = Claim{rapid.Int64Range(1, 8).Draw(t, "epoch"), fmt.Sprintf("n%d", rapid.IntRange(0, 9).Draw(t, "claimant"))}
			}
		}
	}
	if rapid.IntRange(0, 5).Draw(t, "the same are alive") == 0 {
		v.Alive = maps.Clone(v.Alive)
	}
}

// router is a BGPPeer of every node with an advertisement or two, or nothing.
func router(t *rapid.T) (objects []snapshot.Object) {
	for i := range rapid.IntRange(0, 2).Draw(t, "BGP advertisements") {
		a := &v1alpha1.BGPAdvertisement{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("routes%d", i)}}
		a.Spec.Communities = []string{fmt.Sprintf("64512:%d", i)}
		if i == 1 {
			length := int32(28)
			a.Spec.AggregationLength = &length
		}
		objects = append(objects, a)
	}
	return append(objects, &v1alpha1.BGPPeer{ObjectMeta: metav1.ObjectMeta{Name: "tor"}, Spec: v1alpha1.BGPPeerSpec{MyASN: 64512, ASN: 64513, Address: "10.0.0.254"}})
}

// An endpoint that moves among many nodes and Services is all that is read again. The
// bytes say so, however busy the machine is.
func TestWhatAPlanCostsIsWhatHasChanged(t *testing.T) {
	w := &world{view: View{Alive: map[string]struct{}{}, Facts: map[string]Facts{}, Claims: map[netip.Addr]Claim{}}}
	for i := range 500 {
		w.addNode(twinNode{name: fmt.Sprintf("n%d", i), alive: true, ready: true, subnet: true}, false)
	}
	w.view.Facts = nil
	w.objects = append(w.objects, lanPool("10.1.0.0/16"))
	for i := range 100 {
		w.addService(fmt.Sprintf("s%d", i), twinAddr{addr: addrOf(i), local: map[string]bool{fmt.Sprintf("n%d", i): true}}, i)
		w.view.Claims[addrOf(i)] = Claim{1, fmt.Sprintf("n%d", i)}
	}
	was := snapshot.Of(append(w.objects, claiming("n9", addrOf(9), 1))...)
	plan := Compile(was, "n0", w.view, epoch0(), Options{ExternalIPs: true})
	v4 := discoveryv1.AddressTypeIPv4
	is := was.With(slice("s7-1", "s7", v4, endpoint("n400", "ready"))).With(readyNode("n7", ""))
	view := w.view
	view.Before = Made{plan, was}
	anew, resumed := allocates(is, w.view), allocates(is, view)
	if resumed < anew/2 {
		t.Fatalf("a Node has changed, and %d bytes instead of %d were enough", resumed, anew)
	}
	is = was.With(slice("s7-1", "s7", v4, endpoint("n400", "ready")))
	if view.Before.StillValid(is) {
		t.Fatal("the plan stands: nothing is tested")
	}
	heartbeat, _ := is.Nodes.Get(nodeKey("n9"))
	heartbeat = heartbeat.DeepCopy()
	heartbeat.Status.Capacity = corev1.ResourceList{}
	is = is.With(heartbeat)
	if anew, resumed = allocates(is, w.view), allocates(is, view); resumed > anew/4 {
		t.Errorf("one endpoint took %d bytes, everything %d", resumed, anew)
	}
	view.Claims = maps.Clone(view.Claims) // by gossip, and by a SpeakerStatus
	view.Claims[addrOf(8)] = Claim{2, "n300"}
	is = was.With(claiming("n9", addrOf(9), 2))
	if anew, resumed = allocates(is, w.view), allocates(is, view); resumed > anew/4 {
		t.Errorf("two claims took %d bytes, everything %d", resumed, anew)
	}
	if after := Compile(is, "n0", view, epoch0(), Options{ExternalIPs: true}).L2.Claims; after[addrOf(8)].Node != "n300" || after[addrOf(9)].Epoch != 2 {
		t.Errorf("the claims are %v and %v", after[addrOf(8)], after[addrOf(9)])
	}
}

// claiming is the SpeakerStatus of a node that has claimed an address.
func claiming(node string, a netip.Addr, epoch int64) *v1alpha1.SpeakerStatus {
	s := &v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: node}}
	s.Status.Announcing = []v1alpha1.Announcing{{Service: "default/s", Address: a.String(), Protocol: "l2", Epoch: epoch}}
	return s
}

// Whoever claims what: whom a node watches follows from the shares that all have then, and
// not from those of the plan before.
func TestWhomANodeWatchesFollowsTheClaims(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{view: View{Alive: map[string]struct{}{}, Claims: map[netip.Addr]Claim{}, Facts: map[string]Facts{}}}
		nodes := rapid.IntRange(4, 20).Draw(t, "nodes")
		node := func() string { return fmt.Sprintf("n%d", rapid.IntRange(0, nodes-1).Draw(t, "holder")) }
		for i := range nodes {
			w.addNode(twinNode{name: fmt.Sprintf("n%d", i), alive: true, ready: true, subnet: true}, false)
		}
		w.objects = append(w.objects, lanPool("10.0.0.0/24"))
		for i := range rapid.IntRange(1, 2*nodes).Draw(t, "services") {
			a := twinAddr{addr: netip.AddrFrom4([4]byte{10, 0, 0, byte(100 + i)})}
			w.addService(fmt.Sprintf("s%02d", i), a, i)
			w.view.Claims[a.addr] = Claim{1, node()}
		}
		c := snapshot.Of(w.objects...)
		view := w.view
		view.Before = Made{Compile(c, "n0", view, epoch0(), Options{}), c}
		for epoch := range int64(4) {
			view.Claims = maps.Clone(view.Claims)
			view.Claims[rapid.SampledFrom(w.addrs).Draw(t, "address").addr] = Claim{2 + epoch, node()}
			anew := view
			anew.Before = Made{}
			got, want := Compile(c, "n0", view, epoch0(), Options{}), Compile(c, "n0", anew, epoch0(), Options{})
			if !isSame(got, want) {
				t.Fatalf("made of the one before:\n%+v\nand anew:\n%+v", got, want)
			}
			view.Before.Plan = Compile(c, "n0", view, epoch0(), Options{})
		}
	})
}

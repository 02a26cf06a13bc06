package speaker

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/members"
)

func keyOf(b byte) (ed25519.PublicKey, string) {
	key := make(ed25519.PublicKey, ed25519.PublicKeySize)
	key[0] = b
	return key, base64.StdEncoding.EncodeToString(key)
}

func speakerOf(node, key string) *v1alpha1.SpeakerStatus {
	return &v1alpha1.SpeakerStatus{ObjectMeta: metav1.ObjectMeta{Name: node}, Status: v1alpha1.SpeakerStatusStatus{GossipKey: key}}
}

// The key of a node is what it publishes, and for what others pass on, the one before
// that. What is no key is none, and a key that is taken back is gone.
func TestKeysAreReadAsTheyArePublished(t *testing.T) {
	first, firstText := keyOf(1)
	second, secondText := keyOf(2)
	_, thirdText := keyOf(3)
	var r reader
	c := snapshot.Of(speakerOf("n1", firstText), speakerOf("n2", ""), speakerOf("n3", "not base64"), speakerOf("n4", "AAAA"))
	keys, changed := r.read(c)
	if !changed || len(keys["n1"]) != 1 || !keys["n1"][0].Equal(first) || len(keys["n2"])+len(keys["n3"])+len(keys["n4"]) > 0 {
		t.Fatalf("%v", keys)
	}
	if _, changed := r.read(c); changed {
		t.Error("the same is news")
	}
	c = c.With(speakerOf("n2", "")) // it says another thing
	if _, changed := r.read(c); changed {
		t.Error("another word of a speaker is news")
	}
	c = c.With(speakerOf("n1", secondText))
	if keys, _ = r.read(c); len(keys["n1"]) != 2 || !keys["n1"][0].Equal(second) || !keys["n1"][1].Equal(first) {
		t.Errorf("a new key: %v", keys)
	}
	c = c.With(speakerOf("n1", thirdText))
	if keys, _ = r.read(c); len(keys["n1"]) != 2 || !keys["n1"][1].Equal(second) {
		t.Errorf("a third key: %v", keys)
	}
	c = c.With(speakerOf("n1", ""))
	if keys, changed = r.read(c); !changed || len(keys["n1"]) != 0 {
		t.Errorf("taken back: %v", keys)
	}
	c = c.With(speakerOf("n1", firstText)).Without(snapshot.SpeakerStatus, snapshot.Key{Name: "n1"})
	if keys, _ = r.read(c); len(keys) != 0 {
		t.Errorf("without a status: %v", keys)
	}
}

// talker is a member with a key who has met the others, or not.
type talker struct {
	Gossip
	key     ed25519.PublicKey
	settled bool
}

func (g *talker) PublicKey() ed25519.PublicKey { return g.key }
func (g *talker) View() *members.View          { return &members.View{Settled: g.settled} }

// A node's key stands from the first meeting with the others on, whatever becomes of the
// speaker: each life replaces that of the one before, and none takes it away.
func TestAKeyStays(t *testing.T) {
	first, firstText := keyOf(1)
	second, secondText := keyOf(2)
	for _, tt := range []struct {
		name      string
		published string
		talker    talker
		want      string
	}{
		{"the first life, before it has met the others", "", talker{key: first}, ""},
		{"the first life", "", talker{key: first, settled: true}, firstText},
		{"later", firstText, talker{key: first, settled: true}, firstText},
		{"it loses the others", firstText, talker{key: first}, firstText},
		{"the next life, before it has met the others", firstText, talker{key: second}, secondText},
		{"the next life", firstText, talker{key: second, settled: true}, secondText},
	} {
		s := &Speaker{opts: Options{NodeName: "n1"}, members: &tt.talker}
		if got := s.gossipKey(snapshot.Of(speakerOf("n1", tt.published))); got != tt.want {
			t.Errorf("%s: it publishes %q, want %q", tt.name, got, tt.want)
		}
	}
	if got := (&Speaker{members: newSolitary("n1")}).gossipKey(snapshot.Of()); got != "" {
		t.Errorf("a solitary speaker publishes %q", got)
	}
}

// pruner is a writer to a server that drops fields which it does not know.
type pruner struct{ *notes }

func (p *pruner) UpdateStatus(ctx context.Context, o snapshot.Object) error {
	status := o.DeepCopyObject().(*v1alpha1.SpeakerStatus)
	status.Status.GossipKey, status.Status.GossipSecrets, status.Status.Node, status.Status.Unheard = "", nil, nil, nil
	for i := range status.Status.Interfaces {
		status.Status.Interfaces[i].Addresses, status.Status.Interfaces[i].Routes = nil, nil
	}
	return p.notes.UpdateStatus(ctx, status)
}

// A server whose CRD knows no key, no Node, or no addresses of interfaces, drops them.
// The speaker tells once, and does not go on writing the same for ever.
func TestAServerOfTheVersionBefore(t *testing.T) {
	s, n := lone(t)
	pruning := &pruner{notes: n}
	s.opts.Writer = pruning
	p := newPublisher(s.opts)
	p.log = s.opts.Log
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = p.run(ctx) }()
	defer func() { stop(); <-done }()
	_, text := keyOf(1)
	want := v1alpha1.SpeakerStatusStatus{AnnouncingCount: 1, GossipKey: text, GossipSecrets: []string{"0123abcd"}, Node: &v1alpha1.SpeakerNode{UID: "1"},
		Unheard: []v1alpha1.UnheardAddress{{Address: "10.0.0.240", Node: "n2", Interface: "eth0"}}}
	want.Interfaces = []v1alpha1.SpeakerInterface{{Name: "eth0", Prefixes: []string{"10.0.0.1/24", "10.1.0.1/32"}, Addresses: []string{"10.0.0.1/24"}, Routes: []string{"10.1.0.1/32"}}}
	p.set(want)
	for begin := time.Now(); slices.ContainsFunc(p.parts, func(part *part) bool { return !part.dropped.Load() }); time.Sleep(time.Millisecond) {
		if time.Since(begin) > 20*time.Second {
			t.Fatal("it does not see that its key, the words for its secrets, what it does not hear, its Node and its addresses are dropped")
		}
	}
	p.set(want)
	if want, have := p.want.Load(), p.have(); !equal(&have.Status, &want.SpeakerStatusStatus) {
		t.Errorf("it wants %+v, and there is %+v", want, have.Status)
	}
	if i := want.Interfaces[0]; len(i.Prefixes) != 2 || len(i.Addresses) != 1 || len(i.Routes) != 1 {
		t.Errorf("the machine's own list has become %+v", i)
	}
}

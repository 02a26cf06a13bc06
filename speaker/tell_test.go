package speaker

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/announce"
	"quayside.io/speaker/members"
	"quayside.io/test/netns"
)

// notes keeps the Events.
type notes struct {
	cluster.Writer
	heard []string
}

func (n *notes) Event(about snapshot.Ref, _, reason, message string) {
	n.heard = append(n.heard, about.String()+" "+reason+": "+message)
}

// thinker is the mind of node n1 among the objects of a fleet, alone.
func thinker(t *testing.T, more ...snapshot.Object) (*mind, *notes) {
	t.Helper()
	files, err := cluster.NewFiles(nil, nil, cluster.FilesOptions{NodeName: "machine"})
	if err != nil {
		t.Fatal(err)
	}
	files.Put(append(objects(2), more...)...)
	go func() { _ = files.Run(t.Context()) }()
	changes := files.Watch(snapshot.Service)
	defer changes.Stop()
	for files.Snapshot().Services.Len() == 0 { // they are put together
		<-changes.C()
	}
	n := &notes{}
	s, err := New(Options{Source: files.Source, Writer: n, NodeName: "n1", Solitary: true})
	if err != nil {
		t.Fatal(err)
	}
	m := &mind{Speaker: s, mine: map[netip.Addr]int64{}, remembered: map[netip.Addr]struct{}{}, handing: map[netip.Addr]time.Time{}, losses: map[netip.Addr]announce.Loss{},
		refused: map[netip.Addr]refusal{}, retry: time.NewTimer(time.Hour)}
	m.pub = newPublisher(s.opts)
	return m, n
}

// Whichever brings the better claim first, gossip or the API server, the
// Service hears that this node has stopped.
func TestWhoIsOutrankedByAStatusSaysSo(t *testing.T) {
	other := &v1alpha1.SpeakerStatus{}
	other.Name = "n2"
	other.Status.Announcing = []v1alpha1.Announcing{{Service: "default/s0", Address: "10.0.0.50", Protocol: "l2", Epoch: 3}}
	m, notes := thinker(t, other)
	a := netip.MustParseAddr("10.0.0.50")
	m.mine[a] = 2
	m.plan = &announce.Plan{L2: announce.L2{Answers: map[netip.Addr]announce.Answer{a: {Epoch: 2, Services: []snapshot.Key{{Namespace: "default", Name: "s0"}}}}}}
	m.compile()
	if m.claims(a) {
		t.Error("the claim stands although a better one is known")
	}
	if m.losses[a].Times != 1 {
		t.Errorf("counted as %d losses", m.losses[a].Times)
	}
	want := "Service default/s0 Moved: node n1 stops announcing 10.0.0.50: node n2 does now"
	if !slices.Contains(notes.heard, want) {
		t.Errorf("told %q, want %q", notes.heard, want)
	}
}

// A stranger on an address of a Service is told to the Service by the node that
// heard it, once: nobody else knows.
func TestAStrangerIsToldToTheService(t *testing.T) {
	m, notes := thinker(t)
	a := netip.MustParseAddr("10.0.0.50")
	m.refused[a] = refusal{Refusal: announce.Refusal{MAC: "02:00:00:00:00:99"}, retry: time.Now().Add(time.Minute)}
	for range 2 {
		m.compile()
		m.tell()
	}
	if len(notes.heard) != 1 || !strings.HasPrefix(notes.heard[0], "Service default/s0 AddressInUse: 10.0.0.50 belongs to this Service and a stranger (02:00:00:00:00:99)") {
		t.Errorf("told %q, want one Event about the stranger", notes.heard)
	}
}

// A question that fails says nothing about anybody: no stranger is accused.
func TestAFailedQuestionAccusesNobody(t *testing.T) {
	m, notes := thinker(t)
	m.asking = map[netip.Addr]struct{}{}
	m.compile()
	asked := map[netip.Addr]announce.Take{}
	for _, take := range m.plan.L2.Take {
		asked[take.Address] = take
	}
	if len(asked) == 0 {
		t.Fatal("nothing is to be asked")
	}
	m.hear(verdict{asked: asked, err: errors.New("list routes of eth0: results may be incomplete or inconsistent")})
	m.compile()
	m.tell()
	if len(notes.heard) > 0 {
		t.Error(notes.heard)
	}
}

// A speaker that may not open packet sockets says so wherever it can, and does
// not meet the others, who would leave it its share of the addresses.
func TestWhoMayNotSpeakLeavesItsShare(t *testing.T) {
	files, err := cluster.NewFiles(nil, nil, cluster.FilesOptions{NodeName: "machine"})
	if err != nil {
		t.Fatal(err)
	}
	files.Put(objects(2)...)
	go func() { _ = files.Run(t.Context()) }()
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("a secret for the fleet\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	n := &notes{Writer: files}
	s, err := New(Options{Source: files.Source, Writer: n, NodeName: "n1", MembersKeyFile: key, MembersBind: "127.0.0.1:17946"})
	if err != nil {
		t.Fatal(err)
	}
	said := func() string {
		if status, ok := files.Snapshot().SpeakerStatuses.Get(snapshot.Key{Name: "n1"}); ok {
			return fmt.Sprint(status.Status.Members.NotAlive)
		}
		return ""
	}
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	go func() {
		for said() == "" && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		stop()
	}()
	netns.Without(t, unix.CAP_NET_RAW, func() { err = s.Run(ctx) })
	if err != nil {
		t.Error(err)
	}
	if waiting := s.members.View().Waiting; waiting != "speaker is starting" {
		t.Errorf("it has met others: %q", waiting)
	}
	told := map[string]string{"readiness": fmt.Sprint(s.Ready()), "SpeakerStatus": said(), "Events": fmt.Sprint(n.heard)}
	for where, text := range told {
		if !strings.Contains(text, "NET_RAW") {
			t.Errorf("%s says %q", where, text)
		}
	}
	if want := "Node n1 SpeakerWaiting: this node announces nothing: "; len(n.heard) != 1 || !strings.HasPrefix(n.heard[0], want) {
		t.Errorf("told %q, want one %q", n.heard, want)
	}
}

// A speaker that is restarted is missed by all others: none of them tells, or a
// rollout over a thousand nodes would bring a million Events.
func TestAShortAbsenceIsNotTold(t *testing.T) {
	other := &v1alpha1.SpeakerStatus{}
	other.Name = "n2"
	m, _ := thinker(t, other)
	m.compile()
	began := time.Now()
	miss := func(at time.Time, names ...string) (told []snapshot.Problem) {
		m.members = &members.View{Settled: true, Missing: map[string]string{}}
		for _, name := range names {
			m.members.Missing[name] = "it has left"
		}
		m.noteLacks(at)
		return m.ownProblems(at)
	}
	if told := miss(began, "n2"); len(told) > 0 || m.nextLack(began) != absence {
		t.Errorf("told at once: %v; looks again in %v", told, m.nextLack(began))
	}
	if told := miss(began.Add(absence-time.Second), "n2"); len(told) > 0 || m.nextLack(began.Add(absence-time.Second)) != time.Second {
		t.Errorf("told early: %v", told)
	}
	if told := miss(began.Add(absence), "n2"); len(told) != 1 || told[0].Reason != "MemberMissing" {
		t.Errorf("told %v", told)
	}
	if told := miss(began.Add(2 * absence)); len(told) > 0 {
		t.Errorf("it is back, and yet: %v", told)
	}
	if told := miss(began.Add(2*absence), "n2"); len(told) > 0 {
		t.Errorf("told at once when it went again: %v", told)
	}
}

// A start is no problem, a key that is still missing is.
func TestAStartIsNotTold(t *testing.T) {
	m, _ := thinker(t)
	m.compile()
	began := time.Now()
	wait := func(at time.Time, why string) []snapshot.Problem {
		m.members = &members.View{Waiting: why}
		m.noteLacks(at)
		return m.ownProblems(at)
	}
	if told := wait(began, "speaker is starting"); len(told) > 0 || m.nextLack(began) != starting {
		t.Errorf("told at once: %v; looks again in %v", told, m.nextLack(began))
	}
	if told := wait(began.Add(starting), "waiting for the members key"); len(told) != 1 || !strings.Contains(told[0].Message, "waiting for the members key") {
		t.Errorf("told %v", told)
	}
	if told := wait(began.Add(2*starting), ""); len(told) > 0 || m.nextLack(began.Add(2*starting)) != time.Hour {
		t.Errorf("it works, and yet: %v", told)
	}
}

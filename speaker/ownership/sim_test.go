package ownership

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"time"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
	"quayside.io/speaker/due"
	"quayside.io/test/objects"
)

// A simulated fleet: machines that are real, on a LAN, with a gossip and in a time
// that are made up. It is deterministic: the same seed gives the same history.

// tester is a test, or one history of rapid.
type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Delays of the simulated world, those of profile fast. Each is drawn from half to
// the whole of its bound.
const (
	gossipDelay = 30 * time.Millisecond   // of a message from speaker to speaker
	noticeDelay = 300 * time.Millisecond  // until a member that is out of reach is missed
	doubtDelay  = 100 * time.Millisecond  // until one that is watched and out of reach is doubted
	joinDelay   = 500 * time.Millisecond  // until one that is back is met
	watchDelay  = 50 * time.Millisecond   // of a write by way of the API server
	writePause  = 500 * time.Millisecond  // between two statuses of one speaker
	settles     = 500 * time.Millisecond  // until what stands is written, and
	settlesBy   = 2 * time.Second         // until what changes on and on is
	deafDelay   = 1500 * time.Millisecond // until an interface knows that nobody hears it
	hearDelay   = time.Second             // until it knows that somebody does
	reaping     = 60 * time.Millisecond   // a killed process listens until its kernel has closed all
)

// sim is the world of a fleet.
type sim struct {
	t         tester
	now       time.Time
	chance    *rand.Rand
	agenda    due.Queue[func()]
	nodes     []*simNode
	strangers map[netip.Addr]*simStranger
	truth     *snapshot.Cluster // what the API server has
	puts      int               // how often that was changed
	apiDown   bool
	farHost   bool // a host on segment 1 answers, as the client on segment 0 does
	watch     *watcher
	log       []string
}

// simNode is one machine of the LAN, and the speaker on it.
type simNode struct {
	*sim
	name, mac string
	index     int
	segment   int  // of the LAN; 0 is where the client is
	carrier   bool // its cable is plugged in
	silenced  bool // it drops every packet
	gossipCut bool // it drops those of gossip
	lanCut    bool // it drops all but those of gossip and the API server
	deaf      bool // and its layer 2 knows

	speaker *simSpeaker // nil: it does not run
	closing time.Time   // until when the kernel closes what a killed one had open
	paused  bool        // the speaker gets no processor
	cluster *snapshot.Cluster
	lag     time.Duration                 // of its watch, beside the usual
	behind  bool                          // its kube-proxy
	stale   bool                          // its watch has missed something
	listed  int                           // the number of the last put when it was last listed
	seen    map[snapshot.Ref]int          // that of the put of what it shows since
	shown   *v1alpha1.SpeakerStatusStatus // what was written last
}

// simSpeaker is a speaker from its start to its end.
type simSpeaker struct {
	machine *Machine
	answers map[netip.Addr]Announcement
	gossip  *simGossip
	wake    due.Entry[func()]
	inbox   []Event
	poked   bool
	status  *v1alpha1.SpeakerStatusStatus
	writing due.Entry[func()] // of status
	written time.Time
	stands  time.Time // since when status is this one
	differs time.Time // since when it is not what was written last; zero: it is
	leaving bool      // it was asked to
}

// simStranger is a host that is none of ours.
type simStranger struct {
	mac     string
	segment int
}

func newSim(t tester, nodes int, seed uint64) *sim {
	s := &sim{t: t, now: began(), chance: rand.New(rand.NewPCG(seed, 0)), strangers: map[netip.Addr]*simStranger{}}
	cluster := snapshot.Of(append(objects.Fleet(nodes), objects.Endpoints("n1", "n2"))...)
	for i := range nodes {
		s.nodes = append(s.nodes, &simNode{sim: s, name: fmt.Sprintf("n%d", i+1), index: i, mac: fmt.Sprintf("02:00:00:00:00:%02x", i+1), carrier: true, cluster: cluster, seen: map[snapshot.Ref]int{}})
	}
	s.truth = cluster
	s.watch = newWatcher(s)
	return s
}

// in puts something on the agenda.
func (s *sim) in(d time.Duration, what func()) *due.Entry[func()] {
	e := &due.Entry[func()]{Value: what}
	s.agenda.Set(e, s.now.Add(max(0, d)))
	return e
}

// cancel takes something off the agenda, if it is there.
func (s *sim) cancel(e *due.Entry[func()]) {
	if e != nil {
		s.agenda.Remove(e)
	}
}

// about is between half of a delay and the whole.
func (s *sim) about(d time.Duration) time.Duration {
	return d/2 + time.Duration(s.chance.Int64N(int64(d/2)+1))
}

// run lets time pass.
func (s *sim) run(d time.Duration) {
	s.t.Helper()
	for end := s.now.Add(d); ; {
		e := s.agenda.First()
		if e == nil || e.At().After(end) {
			s.now = end
			s.watch.look()
			return
		}
		s.agenda.Remove(e)
		s.now = e.At()
		e.Value()
		s.watch.look()
	}
}

// until lets time pass until something holds, and says how long it took.
func (s *sim) until(what string, bound time.Duration, holds func() bool) time.Duration {
	s.t.Helper()
	from := s.now
	for !holds() {
		if s.now.Sub(from) > bound {
			s.fatalf("not within %v: %s", bound, what)
		}
		s.run(5 * time.Millisecond)
	}
	return s.now.Sub(from)
}

func (s *sim) note(format string, args ...any) {
	s.log = append(s.log, fmt.Sprintf("%9.3f ", s.now.Sub(began()).Seconds())+fmt.Sprintf(format, args...))
}

func (s *sim) fatalf(format string, args ...any) {
	s.t.Helper()
	s.t.Fatalf("%9.3f %s\n%s", s.now.Sub(began()).Seconds(), fmt.Sprintf(format, args...), strings.Join(s.log[max(0, len(s.log)-150):], "\n"))
}

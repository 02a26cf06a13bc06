package controller

import (
	"time"

	"quayside.io/controller/cluster"
	"quayside.io/controller/snapshot"
)

// A Problem whose text changes is told again at once, for somebody may be mending
// it and wants to know; one whose text keeps changing, tellTimes in a row and then
// once in tellAgain. One that comes and goes with the same text is told once in
// tellAgain, too.
const (
	tellAgain = time.Minute
	tellTimes = 3
)

// teller turns Problems into Events, when they appear and not while they last.
type teller struct {
	source *cluster.Source
	writer cluster.Writer
	now    func() time.Time
	known  map[topic]telling
	// due is when a text that was held back is to be told; zero: there is none.
	due time.Time
}

// topic is what an Event is about; the words may differ from time to time.
type topic struct {
	object snapshot.Ref
	reason string
}

type telling struct {
	message string
	at      time.Time // when it was last told
	row     int       // how often in a row, without a rest of tellAgain
	gone    bool      // the Problem is over, but was told lately
}

func newTeller(source *cluster.Source, writer cluster.Writer, now func() time.Time) *teller {
	return &teller{source: source, writer: writer, now: now, known: map[topic]telling{}}
}

// tell takes all Problems that exist now.
func (t *teller) tell(problems []snapshot.Problem) {
	now := t.now()
	c := t.source.Snapshot()
	t.due = time.Time{}
	present := make(map[topic]bool, len(problems))
	for _, p := range problems {
		about := topic{p.Object, p.Reason}
		if present[about] {
			continue // one Event for several Problems of one reason
		}
		present[about] = true
		before, told := t.known[about]
		rested := now.Sub(before.at) >= tellAgain
		same := before.message == p.Message && (!before.gone || !rested)
		if told && (same || before.row >= tellTimes && !rested) {
			before.gone = false
			t.known[about] = before
			if !same {
				t.due = earlier(t.due, before.at.Add(tellAgain))
			}
			continue
		}
		if !exists(c, p.Object) {
			continue // no object to tell it on; /state and the log have it
		}
		if rested {
			before.row = 0
		}
		t.known[about] = telling{message: p.Message, at: now, row: before.row + 1}
		t.writer.Event(p.Object, "Warning", p.Reason, p.Message)
	}
	for about, before := range t.known {
		if present[about] {
			continue
		}
		if now.Sub(before.at) >= tellAgain {
			delete(t.known, about)
		} else {
			before.gone = true
			t.known[about] = before
		}
	}
}

func (t *teller) forget() { clear(t.known) }

// exists reports whether ref is an object of the cluster, not a file or server.
func exists(c *snapshot.Cluster, ref snapshot.Ref) bool {
	for kind := range snapshot.Kinds() {
		if kind.String() == ref.Kind {
			_, ok := c.Get(kind, ref.Key)
			return ok
		}
	}
	return false
}

package controller

import (
	"time"

	"quayside.io/controller/cluster"
	"quayside.io/controller/snapshot"
)

// tellAgain is how long a Problem whose text changes, or that comes and goes,
// is not told again on its object.
const tellAgain = time.Minute

// teller turns Problems into Events, when they appear and not while they last.
type teller struct {
	source *cluster.Source
	writer cluster.Writer
	now    func() time.Time
	known  map[topic]telling
}

// topic is what an Event is about; the words may differ from time to time.
type topic struct {
	object snapshot.Ref
	reason string
}

type telling struct {
	message string
	at      time.Time // when it was last told
	gone    bool      // the Problem is over, but was told lately
}

func newTeller(source *cluster.Source, writer cluster.Writer, now func() time.Time) *teller {
	return &teller{source, writer, now, map[topic]telling{}}
}

// tell takes all Problems that exist now.
func (t *teller) tell(problems []snapshot.Problem) {
	now := t.now()
	c := t.source.Snapshot()
	present := make(map[topic]bool, len(problems))
	for _, p := range problems {
		about := topic{p.Object, p.Reason}
		if present[about] {
			continue // one Event for several Problems of one reason
		}
		present[about] = true
		before, told := t.known[about]
		if told && (before.message == p.Message && !before.gone || now.Sub(before.at) < tellAgain) {
			before.gone = false
			t.known[about] = before
			continue
		}
		if !exists(c, p.Object) {
			continue // no object to tell it on; /state and the log have it
		}
		t.known[about] = telling{message: p.Message, at: now}
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

package controller

import (
	"context"
	"time"

	"quayside.io/cluster"
	"quayside.io/cluster/snapshot"
)

// A Problem whose text changes is reported again at once, for somebody may be
// correcting it and wants to know; one whose text keeps changing, reportTimes in a
// row and then once per reportAgain. One that comes and goes with the same text is
// reported once per reportAgain, too.
const (
	reportAgain = time.Minute
	reportTimes = 3
)

// reporter turns Problems into Events, when they appear; see remind for those that
// last.
type reporter struct {
	source *cluster.Source
	writer cluster.Writer
	now    func() time.Time
	known  map[topic]report
	// due is when a text that was held back is to be reported; zero: there is none.
	due time.Time
}

// topic is what an Event is about; the words may differ from time to time.
type topic struct {
	object snapshot.Ref
	reason string
}

type report struct {
	message string
	at      time.Time // of the last Event
	row     int       // how often in a row, without a rest of reportAgain
	gone    bool      // the Problem is over, but was reported lately
}

func newReporter(source *cluster.Source, writer cluster.Writer, now func() time.Time) *reporter {
	return &reporter{source: source, writer: writer, now: now, known: map[topic]report{}}
}

// report takes all Problems that exist now.
func (r *reporter) report(problems []snapshot.Problem) {
	now := r.now()
	c := r.source.Snapshot()
	r.due = time.Time{}
	present, topics := messages(problems)
	for _, about := range topics {
		message := present[about]
		before, reported := r.known[about]
		rested := now.Sub(before.at) >= reportAgain
		same := before.message == message && (!before.gone || !rested)
		if reported && (same || before.row >= reportTimes && !rested) {
			before.gone = false
			r.known[about] = before
			if !same {
				r.due = earlier(r.due, before.at.Add(reportAgain))
			}
			continue
		}
		if !exists(c, about.object) {
			continue // an Event needs an object; /state and the log have the Problem
		}
		if rested {
			before.row = 0
		}
		r.known[about] = report{message: message, at: now, row: before.row + 1}
		r.writer.Event(about.object, "Warning", about.reason, message)
	}
	for about, before := range r.known {
		if _, still := present[about]; still {
			continue
		}
		if now.Sub(before.at) >= reportAgain {
			delete(r.known, about)
		} else {
			before.gone = true
			r.known[about] = before
		}
	}
}

// messages returns what there is to say of each topic, and the topics in the order
// in which they come: several Problems of one reason make one Event, in which all
// stand, as far as there is room in it.
func messages(problems []snapshot.Problem) (map[topic]string, []topic) {
	text, topics := make(map[topic]string, len(problems)), make([]topic, 0, len(problems))
	for _, p := range problems {
		about := topic{p.Object, p.Reason}
		switch said, more := text[about]; {
		case !more:
			topics = append(topics, about)
			text[about] = p.Message
		case len(said) < cluster.NoteLength:
			text[about] = said + "; " + p.Message
		}
	}
	return text, topics
}

// isDue reports whether a text that was held back is to be reported now.
func (r *reporter) isDue() bool { return !r.due.IsZero() && !r.now().Before(r.due) }

func (r *reporter) forget() { clear(r.known) }

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

// reminders is how many Problems that last are told again at once, every
// cluster.RemindEvery: 20,000 come to their turn within the hour, and leave half of
// the rate at which Events are sent to what is new.
const reminders = 180

// remind tells Problems that last again, before their Events are forgotten.
func (h *Controller) remind(ctx context.Context) error {
	again := cluster.Repeats{Most: reminders}
	return cluster.Remind(ctx, func(now time.Time) { h.remindOf(&again, now) })
}

func (h *Controller) remindOf(again *cluster.Repeats, now time.Time) {
	c := h.options.Source.Snapshot()
	present, topics := messages(h.Problems())
	lasting := make([]snapshot.Problem, 0, len(topics))
	for _, about := range topics {
		if exists(c, about.object) {
			lasting = append(lasting, snapshot.Problem{Object: about.object, Reason: about.reason, Message: present[about]})
		}
	}
	for _, p := range again.Due(lasting, now) {
		h.options.Writer.Event(p.Object, "Warning", p.Reason, p.Message)
	}
}

package cluster

import (
	"time"

	"quayside.io/cluster/snapshot"
)

// A Problem whose text changes is reported again at once, for somebody may be
// correcting it and wants to know; one whose text keeps changing, as another host may
// choose it, ReportTimes in a row and then once per ReportAgain. One that comes and
// goes with the same text is reported once per ReportAgain, too.
const (
	ReportAgain = time.Minute
	ReportTimes = 3
)

// Reports chooses the Problems to write Events about: when they appear. See Repeats for
// those that last. The zero value has reported nothing.
type Reports struct {
	known map[snapshot.Problem]report // by topic
	due   time.Time
}

// topic returns what an Event is about, of which the words may differ from time to time.
func topic(p snapshot.Problem) snapshot.Problem {
	p.Message = ""
	return p
}

type report struct {
	message string
	at      time.Time // of the last Event
	row     int       // how often in a row, without a rest of ReportAgain
	gone    bool      // the Problem is over, but was reported lately
	held    bool      // a newer text was held back: it has not rested
}

// Fresh takes all Problems that exist now, Joined, and returns those to report. One
// about what does not exist waits until it does.
func (r *Reports) Fresh(joined []snapshot.Problem, now time.Time, exists func(snapshot.Ref) bool) (fresh []snapshot.Problem) {
	if r.known == nil {
		r.known = map[snapshot.Problem]report{}
	}
	r.due = time.Time{}
	present := make(map[snapshot.Problem]struct{}, len(joined))
	for _, p := range joined {
		about := topic(p)
		present[about] = struct{}{}
		before, reported := r.known[about]
		rested := now.Sub(before.at) >= ReportAgain
		same := before.message == p.Message && (!before.gone || !rested)
		if reported && (same || before.row >= ReportTimes && !rested) {
			before.gone, before.held = false, before.held || !same
			r.known[about] = before
			if again := before.at.Add(ReportAgain); !same && (r.due.IsZero() || again.Before(r.due)) {
				r.due = again
			}
			continue
		}
		if !exists(p.Object) {
			continue // an Event needs an object; /state and the log have the Problem
		}
		if rested && !before.held {
			before.row = 0
		}
		r.known[about] = report{message: p.Message, at: now, row: min(before.row+1, ReportTimes)}
		fresh = append(fresh, p)
	}
	for about, before := range r.known {
		if _, still := present[about]; still {
			continue
		}
		if now.Sub(before.at) >= ReportAgain {
			delete(r.known, about)
		} else {
			before.gone = true
			r.known[about] = before
		}
	}
	return fresh
}

// Due is when a text that was held back is to be reported; zero: there is none.
func (r *Reports) Due() time.Time { return r.due }

// Joined returns one Problem for each object and reason, in the order in which they
// come: several make one Event, in which all stand, as far as there is room in it.
func Joined(problems []snapshot.Problem) []snapshot.Problem {
	at, joined := make(map[snapshot.Problem]int, len(problems)), make([]snapshot.Problem, 0, len(problems))
	for _, p := range problems {
		i, more := at[topic(p)]
		switch {
		case !more:
			at[topic(p)] = len(joined)
			joined = append(joined, p)
		case len(joined[i].Message) < NoteLength:
			joined[i].Message += "; " + p.Message
		}
	}
	return joined
}

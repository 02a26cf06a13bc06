package controller

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	networkingv1 "k8s.io/api/networking/v1"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/printable"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/route"
)

const (
	// noteLasts is how long the Problems of an Ingress must be of the same reasons before
	// they are noted on it, or their end is: a Secret often comes a moment after the
	// Ingress that names it,
	noteLasts = 10 * time.Second
	// but those that come and go without end are noted, too.
	noteUnsettled = time.Minute
	// noteRest lies between two notes on one Ingress, and doubles each time when somebody
	// undoes the last one, or the server refuses it.
	noteRest     = 15 * time.Second
	noteLongRest = time.Hour
	// noteLength bounds a note, in bytes, and noteLine a line of it.
	noteLength = 2048
	noteLine   = 512
)

// notes decides what stands on which Ingress as route.ProblemsAnnotation: an Ingress has
// no conditions, so this is where its owner reads what is wrong with it. It belongs to
// one leader, whose next learns what stands there from the Ingresses.
type notes map[snapshot.Key]*note

// A note is what is known of one Ingress that has Problems, or a note of them.
type note struct {
	reasons []string  // of its Problems, each once
	since   time.Time // when these came to be its reasons
	wrong   time.Time // since when there is another text on it than there is to be; zero: there is not

	text    string    // the last that was written, or found there
	written time.Time // when it was; zero: not by this leader
	rest    time.Duration
}

// A jotting is one note to write; empty: to take away.
type jotting struct {
	on   *networkingv1.Ingress
	text string
}

// due returns what is to be written now, what has waited longest first, and when there is
// more; zero: never. problems are those of each Ingress, in order.
func (n notes) due(all snapshot.Store[*networkingv1.Ingress], classes ingressclass.Classes, problems map[snapshot.Key][]snapshot.Problem, now time.Time) (due []jotting, next time.Time) {
	for key, in := range all.All() {
		have, found := problems[key], in.Annotations[route.ProblemsAnnotation]
		state := n[key]
		if state == nil && len(have) == 0 && found == "" {
			continue
		}
		if _, ours := classes.Of(in); !ours {
			// Of a class that another Quayside may serve, only what we wrote is ours.
			if have = nil; state == nil && !classes.Elsewhere(in) {
				continue
			}
		}
		if state == nil {
			state = &note{since: now, text: found, rest: noteRest}
			n[key] = state
		}
		if at, done := state.look(have, found, now); done {
			delete(n, key)
		} else if !at.IsZero() && !now.Before(at) {
			due = append(due, jotting{in, noteOf(have)})
		} else {
			next = earlier(next, at)
		}
	}
	maps.DeleteFunc(n, func(key snapshot.Key, _ *note) bool { _, exists := all.Get(key); return !exists })
	slices.SortFunc(due, func(a, b jotting) int {
		return n[snapshot.KeyOf(a.on)].wrong.Compare(n[snapshot.KeyOf(b.on)].wrong)
	})
	return due, next
}

// look takes in how things stand, and returns when to write; zero: never, for that is
// what stands there. It is done where there is nothing to be remembered.
func (n *note) look(problems []snapshot.Problem, found string, now time.Time) (at time.Time, done bool) {
	if reasons := reasonsOf(problems); !slices.Equal(reasons, n.reasons) {
		n.reasons, n.since = reasons, now
	}
	want := noteOf(problems)
	if found == want {
		n.wrong = time.Time{}
		if found == n.text && want == "" && now.Sub(n.written) >= n.rest {
			return time.Time{}, true
		}
		if found != n.text {
			n.text, n.rest = found, noteRest
		}
		return time.Time{}, false
	}
	if n.wrong.IsZero() {
		n.wrong = now
	}
	at = n.since.Add(noteLasts)
	if late := n.wrong.Add(noteUnsettled); late.Before(at) {
		at = late
	}
	if rested := n.written.Add(n.rest); !n.written.IsZero() && rested.After(at) {
		at = rested
	}
	return at, false
}

// wrote enters the outcome of one write.
func (n notes) wrote(j jotting, err error, now time.Time) {
	state := n[snapshot.KeyOf(j.on)]
	if err != nil || j.text == state.text && !state.written.IsZero() { // refused, or undone meanwhile
		state.rest = min(2*state.rest, noteLongRest)
	} else {
		state.rest = noteRest
	}
	state.text, state.written = j.text, now
}

func reasonsOf(problems []snapshot.Problem) (reasons []string) {
	for _, p := range problems { // they are in order of their reasons
		if len(reasons) == 0 || reasons[len(reasons)-1] != p.Reason {
			reasons = append(reasons, p.Reason)
		}
	}
	return reasons
}

// noteOf is the text about Problems, a line each, as far as there is room.
func noteOf(problems []snapshot.Problem) string {
	var b strings.Builder
	for i, p := range problems {
		line := printable.Cut(printable.Line(p.Reason+": "+p.Message), noteLine)
		more := fmt.Sprintf("\nand %d more", len(problems)-i)
		if b.Len()+1+len(line)+len(more) > noteLength {
			b.WriteString(more)
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(line)
	}
	return b.String()
}

package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"

	"quayside.io/cluster/ingressclass"
	"quayside.io/cluster/snapshot"
	"quayside.io/proxy/route"
)

// noted plays the leader against Ingresses, by a clock of its own.
type noted struct {
	t        *testing.T
	c        *snapshot.Cluster
	rules    ingressclass.Rules
	notes    notes
	problems map[snapshot.Key][]snapshot.Problem
	now      time.Time
	refuse   bool
	undo     bool // somebody takes away at once what is written
	writes   int
}

func newNoted(t *testing.T, all ...*networkingv1.Ingress) *noted {
	n := &noted{t: t, c: snapshot.Unread(), notes: notes{}, problems: map[snapshot.Key][]snapshot.Problem{}, now: time.Date(2026, 11, 24, 8, 0, 0, 0, time.UTC)}
	for _, in := range all {
		n.c = n.c.With(in)
	}
	return n
}

// site is the key of the Ingress of these tests.
func site() snapshot.Key { return snapshot.Key{Namespace: "shop", Name: "site"} }

// wrong says what is wrong with an Ingress from now on, "Reason: message" each.
func (n *noted) wrong(key snapshot.Key, lines ...string) {
	n.problems[key] = nil
	for _, line := range lines {
		reason, message, _ := strings.Cut(line, ": ")
		n.problems[key] = append(n.problems[key], snapshot.Problem{Object: snapshot.Ref{Kind: "Ingress", Key: key}, Reason: reason, Message: message})
	}
}

// pass lets time pass, as the loop does.
func (n *noted) pass(d time.Duration) {
	n.t.Helper()
	for end := n.now.Add(d); n.now.Before(end); n.now = n.now.Add(time.Second) {
		due, next := n.notes.due(n.c.Ingresses, ingressclass.Select(&n.c.Stores, n.rules), n.problems, n.now)
		if !next.IsZero() && !next.After(n.now) {
			n.t.Fatalf("nothing is due, and it is to be woken %v ago: the loop would spin", n.now.Sub(next))
		}
		for _, j := range due {
			n.writes++
			var err error
			if n.refuse {
				err = errors.New("a webhook says no")
			} else if !n.undo {
				after := j.on.DeepCopy()
				if after.Annotations == nil {
					after.Annotations = map[string]string{}
				}
				if after.Annotations[route.ProblemsAnnotation] = j.text; j.text == "" {
					delete(after.Annotations, route.ProblemsAnnotation)
				}
				n.c = n.c.With(after)
			}
			n.notes.wrote(j, err, n.now)
		}
	}
}

func (n *noted) expect(when, text string, writes int) {
	n.t.Helper()
	in, _ := n.c.Ingresses.Get(site())
	if got := in.Annotations[route.ProblemsAnnotation]; got != text || n.writes != writes {
		n.t.Errorf("%s: %q after %d writes, want %q after %d", when, got, n.writes, text, writes)
	}
}

func TestProblemsStandOnTheirIngress(t *testing.T) {
	n := newNoted(t, ingress("shop", "quayside", nil))
	n.pass(time.Minute)
	n.expect("nothing is wrong", "", 0)

	n.wrong(site(), "MissingSecret: tls does not exist")
	n.pass(noteLasts - time.Second)
	n.wrong(site())
	n.pass(time.Minute)
	n.expect("the Secret came a moment later", "", 0)

	n.wrong(site(), "MissingSecret: tls does not exist", "UnknownOption: x\nis not known")
	n.pass(noteLasts + 2*time.Second)
	const both = "MissingSecret: tls does not exist\nUnknownOption: x\\nis not known"
	n.expect("both last", both, 1)
	n.pass(24 * time.Hour)
	n.expect("they last a day", both, 1)

	n.wrong(site(), "UnknownOption: x is not known")
	n.pass(noteLasts + 2*time.Second)
	n.expect("one is over", "UnknownOption: x is not known", 2)
	n.wrong(site())
	n.pass(noteRest + noteLasts)
	n.expect("all is well", "", 3)
	n.pass(time.Hour)
	n.expect("and stays well", "", 3)
	if len(n.notes) > 0 {
		t.Errorf("%d Ingresses are remembered with which nothing is wrong", len(n.notes))
	}
}

// What never settles is noted now and then.
func TestANoteOfWhatNeverSettlesIsRare(t *testing.T) {
	n := newNoted(t, ingress("shop", "quayside", nil))
	for i := range 3600 / 5 {
		n.wrong(site(), fmt.Sprintf("Reason%d: it changes", i%2), fmt.Sprintf("Text: %d", i))
		n.pass(5 * time.Second)
	}
	if n.writes < 30 || n.writes > 3600/15 {
		t.Errorf("%d writes in an hour", n.writes)
	}
}

// A new leader finds the notes of the last, and does not take them away before it knows.
func TestANewLeaderKeepsTheNotes(t *testing.T) {
	in := ingress("shop", "quayside", map[string]string{route.ProblemsAnnotation: "Bad: b"})
	n := newNoted(t, in)
	n.wrong(site(), "Bad: b")
	n.pass(time.Hour)
	n.expect("as it was", "Bad: b", 0)
	n = newNoted(t, in)
	n.pass(noteLasts)
	n.expect("it may not know all yet", "Bad: b", 0)
	n.pass(2 * time.Second)
	n.expect("it is over", "", 1)
}

// Ingresses of others are left alone, and what was written on one that is not ours any
// more goes.
func TestNotesAreOnIngressesOfOurs(t *testing.T) {
	theirs := map[string]string{route.ProblemsAnnotation: "Bad: of another Quayside"}
	n := newNoted(t, ingress("shop", "theirs", theirs))
	n.wrong(site(), "Bad: b")
	n.pass(time.Hour)
	n.expect("another class", theirs[route.ProblemsAnnotation], 0)

	n = newNoted(t, ingress("shop", "quayside", nil))
	n.wrong(site(), "Bad: b")
	n.pass(time.Minute)
	n.expect("ours", "Bad: b", 1)
	n.c = n.c.With(ingress("shop", "theirs", map[string]string{route.ProblemsAnnotation: "Bad: b"}))
	n.pass(time.Minute)
	n.expect("given to another class", "", 2)

	n = newNoted(t, ingress("shop", "quayside", map[string]string{route.ProblemsAnnotation: "Bad: b"}))
	n.rules = ingressclass.Rules{Namespaces: labels.SelectorFromSet(labels.Set{"edge": "public"})}
	n.pass(time.Minute)
	n.expect("its namespace is not served any more", "", 1)
}

// Somebody who takes the note away, or a server that refuses it, is not outdone.
func TestWhoUndoesANoteIsNotOutdone(t *testing.T) {
	for name, play := range map[string]func(*noted){
		"undone":  func(n *noted) { n.undo = true },
		"refused": func(n *noted) { n.refuse = true },
	} {
		n := newNoted(t, ingress("shop", "quayside", nil))
		play(n)
		n.wrong(site(), "Bad: b")
		n.pass(24 * time.Hour)
		if n.writes < 20 || n.writes > 40 {
			t.Errorf("%s: %d writes in a day", name, n.writes)
		}
		n.undo, n.refuse = false, false
		n.pass(noteLongRest + time.Minute)
		n.expect(name+", and no more", "Bad: b", n.writes)
	}
}

func TestANoteIsBounded(t *testing.T) {
	var many []snapshot.Problem
	for i := range 100 {
		many = append(many, snapshot.Problem{Reason: "Bad", Message: fmt.Sprint(i, " ", strings.Repeat("x", 7*i))})
	}
	text := noteOf(many)
	lines := strings.Split(text, "\n")
	if len(text) > noteLength || len(text) < noteLength*3/4 {
		t.Errorf("%d bytes", len(text))
	}
	if last := lines[len(lines)-1]; last != fmt.Sprintf("and %d more", len(many)-len(lines)+1) {
		t.Errorf("%d lines, the last: %q", len(lines), last)
	}
	if long := noteOf([]snapshot.Problem{{Reason: "Bad", Message: strings.Repeat("ü", noteLength)}}); len(long) > noteLine {
		t.Errorf("one line of %d bytes", len(long))
	}
}

// slowly counts the writes that it is asked for in each second.
type slowly struct{ at []time.Time }

func (s *slowly) Annotate(context.Context, snapshot.Object, string, string) error {
	s.at = append(s.at, time.Now())
	return nil
}

// However many Ingresses have a Problem at once, few are written in a second.
func TestNotesComeSlowly(t *testing.T) {
	t.Parallel() // it takes a while
	files := holding(t)
	for i := range 100 {
		in := ingress("shop", "quayside", nil)
		in.Name = fmt.Sprint("site", i)
		files.Put(in)
	}
	s := &slowly{}
	h, err := New(Options{Source: files.Source, Writer: files, Notes: s, Routes: &route.Options{}})
	if err != nil {
		t.Fatal(err)
	}
	var problems []snapshot.Problem
	for i := range 100 {
		problems = append(problems, snapshot.Problem{Object: snapshot.Ref{Kind: "Ingress", Key: snapshot.Key{Namespace: "shop", Name: fmt.Sprint("site", i)}}, Reason: "Bad"})
	}
	h.leading.Store(true)
	h.settle("route", account{problems: problems})
	if _, known := h.ofIngresses(); known {
		t.Error("not everybody has said what is wrong, and it counts as known")
	}
	h.settle("assign", account{})
	ctx, stop := context.WithTimeout(t.Context(), noteLasts+4*time.Second)
	defer stop()
	if err := h.annotate(ctx); err != nil {
		t.Fatal(err)
	}
	if len(s.at) < noteWrites || len(s.at) > 6*noteWrites {
		t.Errorf("%d writes within some four seconds, want %d each", len(s.at), noteWrites)
	}
}

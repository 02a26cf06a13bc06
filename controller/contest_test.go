package controller

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quayside.io/api/v1alpha1"
	"quayside.io/cluster/snapshot"
	"quayside.io/controller/assign"
)

// TestContest plays the loop of the leader against somebody who undoes each
// write before the next look, by a clock of its own.
func TestContest(t *testing.T) {
	web := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web"}}
	undone := []assign.Update{{Was: web}}
	begin := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	c, writes, now := contests{}, 0, begin
	for now.Before(begin.Add(time.Minute)) {
		ready := c.due(undone, now)
		for _, u := range ready {
			writes++
			c.note(u.Was, now)
		}
		next := c.next()
		if len(ready) == 0 && !next.After(now) {
			t.Fatalf("at %v nothing is due and it wants to be woken at %v: the controller would spin", now.Sub(begin), next)
		}
		if reported := len(c.problems()) > 0; reported != (writes > reportAfter) {
			t.Fatalf("after %d writes a Problem is reported: %v", writes, reported)
		}
		if len(ready) == 0 {
			now = next
		}
	}
	if writes < 12 || writes > 20 {
		t.Errorf("%d writes within a minute", writes)
	}

	// The other one stops: the last write stands.
	for _, u := range c.due(undone, now) {
		c.note(u.Was, now)
	}
	next := c.next()
	if wake := next.Sub(now); wake < longPause || wake > longPause+settled {
		t.Errorf("the Problem is looked at again in %v", wake)
	}
	if c.due(nil, next); len(c) != 0 || len(c.problems()) != 0 || !c.next().IsZero() {
		t.Errorf("the contest is over and not forgotten: %v", c)
	}
}

// TestNoContest: what is no quarrel never waits.
func TestNoContest(t *testing.T) {
	begin := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, k := range []struct {
		name   string
		object snapshot.Object
		every  time.Duration
		writes int
	}{
		{"a plan in steps", &corev1.Service{}, 0, 1 + freeRepeats},
		{"a person who edits", &corev1.Service{}, settled, 100},
		{"the counters of a pool", &v1alpha1.IPAddressPool{}, 0, 1000},
	} {
		c := contests{}
		for i := range k.writes {
			now := begin.Add(time.Duration(i) * k.every)
			if len(c.due([]assign.Update{{Was: k.object}}, now)) != 1 {
				t.Errorf("%s: write %d has to wait", k.name, i)
				break
			}
			c.note(k.object, now)
		}
		if told := c.problems(); len(told) > 0 {
			t.Errorf("%s: %v", k.name, told)
		}
	}
}

// TestContestThatNobodyWantsAnyMore does not wake the leader for it.
func TestContestThatNobodyWantsAnyMore(t *testing.T) {
	web := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web"}}
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	c := contests{}
	for range 1 + freeRepeats {
		c.note(web, now)
	}
	if ready := c.due([]assign.Update{{Was: web}}, now); len(ready) != 0 || !c.next().Equal(now.Add(firstPause)) {
		t.Fatalf("%v are due, and the next look is at %v", ready, c.next())
	}
	if c.due(nil, now); !c.next().IsZero() {
		t.Errorf("it wakes at %v for nothing", c.next())
	}
}

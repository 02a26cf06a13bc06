package cluster

import (
	"fmt"
	"testing"
	"time"

	"quayside.io/cluster/snapshot"
)

// Hours with Problems that begin, last and end, looked at as often as the processes do.
func TestWhatLastsIsToldAgainWithinTheHour(t *testing.T) {
	const (
		most  = 180
		hours = 6
	)
	var all []snapshot.Problem
	for i := range 10_000 { // all begin at once, as when a Node fails
		all = append(all, snapshot.Problem{Object: snapshot.Ref{Kind: "Ingress", Key: snapshot.Key{Namespace: "team", Name: fmt.Sprint(i)}}, Reason: "Bad", Message: "why"})
	}
	r := Repeats{Most: most}
	begin := time.Date(2026, 11, 24, 8, 0, 0, 0, time.UTC)
	told := map[snapshot.Problem]time.Time{}
	for _, p := range all {
		told[p] = begin
	}
	busiest, events := 0, 0
	for now := begin; now.Before(begin.Add(hours * time.Hour)); now = now.Add(RemindEvery) {
		due := r.Due(all, now)
		busiest, events = max(busiest, len(due)), events+len(due)
		for _, p := range due {
			if rest := now.Sub(told[p]); rest < repeatEvery && told[p] != begin || rest > time.Hour {
				t.Fatalf("%v: told %v after the last time", p, rest)
			}
			told[p] = now
		}
	}
	if busiest > most {
		t.Errorf("%d at once, although %d are the most", busiest, most)
	}
	for p, at := range told {
		if silent := begin.Add(hours * time.Hour).Sub(at); silent > time.Hour {
			t.Fatalf("%v: not told for %v", p, silent)
		}
	}
	if perHour := events / hours; perHour < len(all) || perHour > len(all)*3/2 { // 4 in 3 hours, and the first sooner
		t.Errorf("%d Events an hour of %d Problems", perHour, len(all))
	}

	// One that ends and begins again is told by who sees it begin.
	now := begin.Add(hours * time.Hour)
	if due := r.Due(nil, now); len(due) > 0 {
		t.Errorf("%d are told that are over", len(due))
	}
	if due := r.Due(all[:1], now.Add(time.Hour)); len(due) > 0 {
		t.Error("one that has just begun is told again")
	}
	if due := r.Due(all[:1], now.Add(2*time.Hour)); len(due) != 1 {
		t.Error("one that lasts is not told again")
	}
}

// An Event that is due again is not taken for a repetition in haste.
func TestRepeatsAreNotDroppedAsEchoes(t *testing.T) {
	if first := repeatEvery - repeatSpread; first <= repeatAfter {
		t.Errorf("repeats come after %v, and what is said again within %v is dropped", first, repeatAfter)
	}
}

package l2

import (
	"log/slog"
	"maps"
	"testing"
	"time"
)

func TestScheduleBurstsThenBeats(t *testing.T) {
	now := time.Unix(1000, 0)
	s := newSchedule(time.Minute)
	s.arm(place{address: vip4}, now)
	var at []time.Duration
	for clock := now; clock.Before(now.Add(3 * time.Minute)); clock = clock.Add(10 * time.Millisecond) {
		for {
			if _, ok := s.next(clock); !ok {
				break
			}
			at = append(at, clock.Sub(now))
		}
	}
	want := append(burst(), burst()[4]+time.Minute, burst()[4]+2*time.Minute)
	if len(at) != len(want) {
		t.Fatalf("announced at %v, want %v", at, want)
	}
	for i := range want {
		if at[i] != want[i] {
			t.Errorf("announcement %d at %v, want %v", i, at[i], want[i])
		}
	}
	s.remove(place{address: vip4})
	if _, some := s.wait(now); some {
		t.Error("a removed address is still due")
	}
}

// An interface that was made anew, under its old name and with its old MAC, is
// another one: what it is plugged into may be, too. The others are not concerned,
// however often that happens.
func TestOnlyTheInterfaceThatCameIsAnnouncedOn(t *testing.T) {
	a := New(Options{Log: slog.New(slog.DiscardHandler)})
	a.Set(wantEverywhere(vip4))
	now := time.Unix(1000, 0)
	plug := func(index int, name string) responderKey {
		l := link{index: index, mac: self}
		l.Name = name
		key := responderKey{index, l.mac, name}
		a.responders[key] = newResponder(key, l, &counters{}, &counters{}, a.raw)
		return key
	}
	due := func() map[responderKey]int {
		out := map[responderKey]int{}
		a.apply(now)
		for until := now.Add(5 * time.Second); now.Before(until); now = now.Add(100 * time.Millisecond) {
			for p, ok := a.sched.next(now); ok; p, ok = a.sched.next(now) {
				out[p.on]++
			}
		}
		return out
	}
	stays, goes := plug(1001, "lan0"), plug(1002, "lan1")
	if got := due(); !maps.Equal(got, map[responderKey]int{stays: len(burst()), goes: len(burst())}) {
		t.Errorf("at first announced on %v", got)
	}
	delete(a.responders, goes)
	comes := plug(1003, "lan1")
	if got := due(); !maps.Equal(got, map[responderKey]int{comes: len(burst())}) {
		t.Errorf("later announced on %v", got)
	}
}

package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// marks are what is read before and after an event.
type marks struct {
	at               time.Time
	self, controller time.Duration // processor time
	beats            int64         // of kubelets
	plans            uint64
	planned          float64 // seconds
}

func (s *stage) mark() marks {
	m := marks{at: time.Now(), controller: worked(s.controller.Process.Pid), beats: s.kubelets.written.Load()}
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) == nil {
		m.self = time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	for _, n := range s.fleet.nodes {
		count, seconds := n.plans()
		m.plans += count
		m.planned += seconds
	}
	return m
}

// worked is the processor time of a process, from /proc; 0 if it has ended.
func worked(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	var ticks int64
	if fields := strings.Fields(rest); len(fields) > 12 {
		for _, f := range fields[11:13] {
			n, _ := strconv.ParseInt(f, 10, 64)
			ticks += n
		}
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// resident is how much memory a process has, and the most that it had, from /proc; 0 if it
// has ended.
func resident(pid int) (now, most int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		kilobytes, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch name {
		case "VmRSS":
			now = kilobytes << 10
		case "VmHWM":
			most = kilobytes << 10
		}
	}
	return now, most
}

// measure lets something happen, waits until nothing has been written or moved for a
// while, and prints what it cost. Without a while only what happens is measured.
func (s *stage) measure(ctx context.Context, what string, do func() error, quiet time.Duration) error {
	s.relay.reset()
	before := s.mark()
	if err := do(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	done := time.Now()
	for quiet > 0 && time.Since(done) < s.patience {
		last := latest(done, s.relay.lastWrite(), s.fleet.lan.lastMove())
		if s.relay.hasRefused() { // else watches end now and then, which means nothing
			last = latest(last, s.relay.lastAsked())
		}
		if time.Since(last) >= quiet {
			break
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	s.last = s.relay.reset()
	after := s.mark()
	s.took = after.at.Sub(before.at)
	s.print(what, before, after, s.last)
	return ctx.Err()
}

func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

// print says what an event cost.
func (s *stage) print(what string, before, after marks, c counts) {
	fmt.Printf("\n## %s\n", what)
	settled := func(name string, at time.Time) {
		if at.After(before.at) {
			fmt.Printf("%-34s %v after the beginning\n", name, at.Sub(before.at).Round(10*time.Millisecond))
		}
	}
	settled("last address moved", s.fleet.lan.lastMove())
	settled("last status written", s.relay.lastWrite())
	if c.Refused > 0 {
		settled("last list or watch asked for", s.relay.lastAsked())
	}
	writes, events := c.writes()
	fmt.Printf("%-34s %d, of them %d Events of speakers (without Leases, and Events of the controller)\n", "API writes", writes, events)
	for _, q := range slices.SortedFunc(maps.Keys(c.Requests), byName) {
		fmt.Printf("  %-32s %d%s\n", q.Who+" "+q.Verb+" "+q.Resource, c.Requests[q], spreadOf(c.Objects[q]))
	}
	fmt.Printf("%-34s %d, of them %d connections that were refused\n", "requests in the busiest second", c.Peak, c.Refused)
	if factor := float64(s.nodes) / float64(s.watching); c.Refused > 0 {
		for _, seconds := range []int64{1, 10} {
			n := c.busiest(seconds)
			fmt.Printf("%-34s %.1f a second; of all %d, times %.1f: %.0f\n", fmt.Sprintf("asked by speakers, busiest %d s", seconds), n, s.nodes, factor, n*factor)
		}
	}
	took := after.at.Sub(before.at)
	for _, who := range c.readers() {
		fmt.Printf("%-34s %s, lists %s\n", "watch bytes of "+who, size(c.bytes(who, "watch")), size(c.bytes(who, "list")))
	}
	due := float64(s.nodes) * took.Seconds() / kubeletPause.Seconds()
	fmt.Printf("%-34s %d of %.0f that were due\n", "Nodes written by their kubelets", after.beats-before.beats, due)
	each := float64(c.bytes("speaker", "watch")) / float64(s.watching)
	fmt.Printf("%-34s %s in %v: %s an hour if it went on so\n", "watch bytes of one speaker", size(int64(each)), took.Round(time.Second), size(int64(s.hourly(c.bytes("speaker", "watch"), took))))
	for _, q := range slices.SortedFunc(maps.Keys(c.Bytes), byName) {
		if q.Who == "speaker" && q.Verb == "watch" {
			fmt.Printf("  %-32s %s an hour\n", "of it of "+q.Resource, size(int64(s.hourly(c.Bytes[q], took))))
		}
	}
	fmt.Printf("%-34s %v\n", "processor time of the controller", (after.controller - before.controller).Round(time.Millisecond))
	now, most := resident(s.controller.Process.Pid)
	fmt.Printf("%-34s %s, at most %s\n", "resident memory of the controller", size(now), size(most))
	fmt.Printf("%-34s %v in all; %.2f %% of a core for each speaker at most (the relay and the %d that share a watch are in it)\n", "processor time of the simulator",
		(after.self - before.self).Round(time.Millisecond), 100*(after.self-before.self).Seconds()/took.Seconds()/float64(s.speaking), s.speaking-s.watching)
	if n := after.plans - before.plans; n > 0 && after.plans > before.plans {
		fmt.Printf("%-34s %d in all, %.2f ms each (of the wall, while all share this machine)\n", "plans made", n, 1000*(after.planned-before.planned)/float64(n))
	} else {
		fmt.Printf("%-34s none\n", "plans made")
	}
}

// hourly is what one of the speakers with watches of their own would read in an hour.
func (s *stage) hourly(bytes int64, took time.Duration) float64 {
	return float64(bytes) / float64(s.watching) * 3600 / took.Seconds()
}

// median is the median of rounds, and their range if there are several.
func median(rounds []float64, text func(float64) string) string {
	if len(rounds) == 1 {
		return text(rounds[0])
	}
	rounds = slices.Sorted(slices.Values(rounds))
	return fmt.Sprintf("%s (%s to %s in %d rounds)", text(rounds[len(rounds)/2]), text(rounds[0]), text(rounds[len(rounds)-1]), len(rounds))
}

func byName(a, b request) int {
	return cmp.Or(cmp.Compare(a.Who, b.Who), cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Resource, b.Resource))
}

// readers are who has read lists or watches.
func (c counts) readers() (names []string) {
	for q := range c.Bytes {
		names = append(names, q.Who)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// spreadOf says how writes fall on objects.
func spreadOf(objects map[string]int) string {
	most := 0
	for _, n := range objects {
		most = max(most, n)
	}
	if most < 2 || len(objects) < 2 {
		return ""
	}
	return fmt.Sprintf(" of %d objects, at most %d of one", len(objects), most)
}

func size(n int64) string {
	switch {
	case n >= 10<<20:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 10<<10:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%d B", n)
}

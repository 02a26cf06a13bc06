package cluster

import (
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Who writes a file in place is given time to finish; who puts a whole one in its
// place is not waited for, unless somebody else is writing.
func TestHowLongToWaitForMoreEvents(t *testing.T) {
	event := func(op fsnotify.Op, name string) fsnotify.Event { return fsnotify.Event{Name: "/m/" + name, Op: op} }
	const create, write, rename = fsnotify.Create, fsnotify.Write, fsnotify.Rename
	replaced := []fsnotify.Event{event(create, "part"), event(write, "part"), event(rename, "part"), event(create, "a.yaml")}
	for _, c := range []struct {
		name   string
		events []fsnotify.Event
		want   time.Duration
	}{
		{"written in place", []fsnotify.Event{event(write, "a.yaml")}, quiet},
		{"a new file", []fsnotify.Event{event(create, "a.yaml")}, quiet},
		{"replaced", replaced, 0},
		{"replaced while another is written", append([]fsnotify.Event{event(write, "b.yaml")}, replaced...), quiet},
		{"replaced, then another is written", append(replaced[:4:4], event(write, "b.yaml")), quiet},
		{"replaced, then written in place", append(replaced[:4:4], event(write, "a.yaml")), quiet},
		{"another event between the two names", []fsnotify.Event{event(rename, "part"), event(write, "b.yaml"), event(create, "a.yaml")}, quiet},
		{"an editor's copy of the old text", []fsnotify.Event{event(rename, "a.yaml"), event(create, "a.yaml~")}, quiet},
		{"one manifest becomes another", []fsnotify.Event{event(rename, "a.yaml"), event(create, "b.yaml")}, quiet},
		{"a mounted ConfigMap", []fsnotify.Event{event(create, "..tmp"), event(rename, "..tmp"), event(create, "..data")}, quiet},
	} {
		u, now := newUnrest(), time.Unix(1, 0)
		var got time.Duration
		for _, e := range c.events {
			got = u.wait(e, now)
		}
		if got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		if c.want == quiet && u.wait(event(write, "a.yaml"), now.Add(patience-time.Millisecond)) != time.Millisecond {
			t.Errorf("%s: no end of patience", c.name)
		}
	}
}

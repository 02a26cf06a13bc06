//go:build linux && !portable

package cluster_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"quayside.io/cluster/snapshot"
)

// What a pipe said stays, for it says it once: -f <(helm template chart).
func TestAPipeIsReadOnce(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString(webService); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	other := write(t, filepath.Join(dir, "other.yaml"), "apiVersion: v1\nkind: Service\nmetadata: {name: first}\n")
	f := open(t, fmt.Sprintf("/dev/fd/%d", r.Fd()), other)
	if web(f.Snapshot()) == nil {
		t.Fatalf("nothing was read; faults %v", f.Snapshot().Faults)
	}
	// An emptied file is believed after a look or two: what comes to pass of a later
	// change, and of one after that, has come after them.
	for _, name := range []string{"second", "third"} {
		write(t, other, "") // and so waits for as long
		gone := func(c *snapshot.Cluster) bool { return len(named(c)) == 0 }
		until(t, f, "an emptied file", gone)
		write(t, other, "apiVersion: v1\nkind: Service\nmetadata: {name: "+name+"}\n")
		c := until(t, f, name, func(c *snapshot.Cluster) bool { return strings.Join(named(c), " ") == name })
		if web(c) == nil {
			t.Fatal("what the pipe said is gone")
		}
	}
}

// named are the Services other than that of the pipe.
func named(c *snapshot.Cluster) (names []string) {
	for _, s := range c.Services.Sorted() {
		if s.Name != "web" {
			names = append(names, s.Name)
		}
	}
	return names
}

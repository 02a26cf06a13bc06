package cluster

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// A file that was written a moment before it was read is read again: what is written
// into it within one tick of the clock has the same stamp.
func TestAFileIsTrustedOnlyAfterAWhile(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells the time of a change")
	}
	name := filepath.Join(t.TempDir(), "a.yaml")
	if err := os.WriteFile(name, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := stampOf(name, time.Now())
	if s.read = s.changed.Add(fineTick / 2); s.isSafe() {
		t.Error("trusted within a tick")
	}
	if s.read = s.changed.Add(coarseTick + time.Second); !s.isSafe() {
		t.Error("never trusted")
	}
	if !s.same(stampOf(name, time.Now())) {
		t.Error("the file has changed though nobody touched it")
	}
	if (fileStamp{}).isSafe() || s.same(fileStamp{}) || s.same(stampOf(name+"x", time.Now())) {
		t.Error("trusted though it is not there")
	}
	// Neither its length nor the time of its writing gives this change away.
	for deadline := time.Now().Add(10 * time.Second); s.changed.Equal(stampOf(name, time.Now()).changed) && time.Now().Before(deadline); {
		if err := os.WriteFile(name, []byte("two"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, time.Time{}, s.info.ModTime()); err != nil {
			t.Fatal(err)
		}
	}
	if s.same(stampOf(name, time.Now())) {
		t.Error("a change in place is not seen")
	}
}

package lab

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestRunOf(t *testing.T) {
	for name, want := range map[string]struct {
		id  string
		pid int
	}{
		"qs-123-node1":      {"qs-123", 123},
		"qs-123.2-node1":    {"qs-123.2", 123},
		"qs-123":            {"qs-123", 123},
		"qs-123-node1-pod2": {"qs-123", 123},
		"qs-try":            {},
		"other-123-node1":   {},
		"qs--node1":         {},
	} {
		if id, pid := runOf(name); id != want.id || pid != want.pid {
			t.Errorf("runOf(%q) = %q, %d; want %q, %d", name, id, pid, want.id, want.pid)
		}
	}
}

func TestLabel(t *testing.T) {
	for name, want := range map[string]string{
		"TestLocalPolicy/nftables": "localpolicy-nftables",
		"Test_A b":                 "a-b",
		"TestAVeryLongNameThatGoesOnAndOnUntilItIsCut": "averylongnamethatgoesonandonuntilitiscut",
	} {
		if got := label(name); got != want {
			t.Errorf("label(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestEventually(t *testing.T) {
	calls := 0
	if err := eventually(time.Minute, func() error {
		if calls++; calls < 3 {
			return errors.New("not yet")
		}
		return nil
	}); err != nil || calls != 3 {
		t.Errorf("%d calls, %v; want 3 and no error", calls, err)
	}
	calls = 0
	never := errors.New("never")
	err := eventually(time.Minute, func() error { calls++; return &permanent{never} })
	if !errors.Is(err, never) || calls != 1 {
		t.Errorf("a permanent error: %d calls, %v", calls, err)
	}
	if err := eventually(0, func() error { return never }); !errors.Is(err, never) {
		t.Errorf("out of time: %v, want the last error", err)
	}
}

func TestReplyFor(t *testing.T) {
	mac := net.HardwareAddr{2, 0x77, 0, 0, 0, 11}
	frame := arpFrame(mac, mustAddr("10.77.0.11"), mustAddr("10.77.0.101"))
	if _, ok := replyFor(frame, mustAddr("10.77.0.11")); ok {
		t.Error("a question counts as an answer")
	}
	frame[etherLen+7] = arpReply
	if got, ok := replyFor(frame, mustAddr("10.77.0.11")); !ok || got != mac.String() {
		t.Errorf("an answer: %q, %v; want %s", got, ok, mac)
	}
	if _, ok := replyFor(frame, mustAddr("10.77.0.12")); ok {
		t.Error("an answer for another address counts")
	}
	if _, ok := replyFor(frame[:etherLen+arpLen-1], mustAddr("10.77.0.11")); ok {
		t.Error("a short frame counts")
	}
}

// A volume changes as a whole, and keys that went are gone.
func TestWriteVolume(t *testing.T) {
	dir := t.TempDir()
	for i, data := range []map[string][]byte{
		{"key": []byte("one"), "extra": []byte("x")},
		{"key": []byte("two")},
		{"key": []byte("two"), "other": []byte("y")},
	} {
		if err := writeVolume(dir, string(rune('1'+i)), data); err != nil {
			t.Fatal(err)
		}
		for key, want := range data {
			if got, err := os.ReadFile(filepath.Join(dir, key)); err != nil || string(got) != string(want) {
				t.Errorf("version %d: %s holds %q (%v), want %q", i+1, key, got, err, want)
			}
		}
		visible, err := filepath.Glob(filepath.Join(dir, "[^.]*"))
		if err != nil || len(visible) != len(data) {
			t.Errorf("version %d: %v is to be seen (%v), want %d files", i+1, visible, err, len(data))
		}
		if versions, err := filepath.Glob(filepath.Join(dir, "..v*")); err != nil || len(versions) != 1 {
			t.Errorf("version %d: folders %v (%v), want one", i+1, versions, err)
		}
	}
}

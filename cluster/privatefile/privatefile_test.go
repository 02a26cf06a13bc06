package privatefile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestWhatIsWrittenIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if _, err := Read(path, 10); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("no file: %v", err)
	}
	// What a process that was killed left behind is in nobody's way.
	if err := os.WriteFile(path+".new", []byte("half"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"one", "", "another"} {
		if err := Write(path, []byte(want)); err != nil {
			t.Fatal(err)
		}
		if got, err := Read(path, 7); err != nil || string(got) != want {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
	if err := Write(filepath.Join(path, "file"), nil); err == nil {
		t.Error("a file in a file")
	}
}

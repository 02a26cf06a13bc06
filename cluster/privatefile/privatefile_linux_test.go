//go:build !portable

package privatefile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestWhatAnybodyCouldHaveMadeIsRefused(t *testing.T) {
	dir := t.TempDir()
	for name, tt := range map[string]struct {
		make func(path string) error
		want string
	}{
		"open":   {func(p string) error { return errors.Join(os.WriteFile(p, []byte("a"), 0o600), os.Chmod(p, 0o640)) }, "open to others"},
		"long":   {func(p string) error { return os.WriteFile(p, make([]byte, 11), 0o600) }, "more than 10"},
		"pipe":   {func(p string) error { return syscall.Mkfifo(p, 0o600) }, "no file"}, // and it does not wait for a writer
		"folder": {func(p string) error { return os.Mkdir(p, 0o700) }, "no file"},
		"link": {func(p string) error {
			return errors.Join(os.WriteFile(p+"-target", []byte("a"), 0o600), os.Symlink(p+"-target", p))
		}, "symbolic links"},
	} {
		path := filepath.Join(dir, name)
		if err := tt.make(path); err != nil {
			t.Fatal(err)
		}
		if content, err := Read(path, 10); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %q, %v; want %q", name, content, err, tt.want)
		}
	}
}

func TestAFileOfSomebodyElseIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to make a file of another user")
	}
	path := filepath.Join(t.TempDir(), "theirs")
	if err := errors.Join(os.WriteFile(path, []byte("a"), 0o600), os.Chown(path, 12345, 12345)); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path, 10); err == nil || !strings.Contains(err.Error(), "somebody else") {
		t.Errorf("%v", err)
	}
}

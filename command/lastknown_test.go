package command

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A speaker signs with the key of its former life, as long as it can be read.
func TestTheSigningKeyIsKept(t *testing.T) {
	var said bytes.Buffer
	log := slog.New(slog.NewTextHandler(&said, nil))
	f := lastKnownFlags{dir: t.TempDir()}
	first := f.signingKey(log)
	if again := f.signingKey(log); !again.Equal(first) || said.Len() > 0 {
		t.Errorf("a new key after a restart: %s", &said)
	}
	file := filepath.Join(f.dir, "signing-key")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	for name, spoil := range map[string]func() error{
		"short": func() error { return os.WriteFile(file, []byte("short"), 0o600) },
		"long":  func() error { return os.WriteFile(file, make([]byte, 33), 0o600) },
		"open":  func() error { return os.Chmod(file, 0o644) },
	} {
		before := f.signingKey(log)
		said.Reset()
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		fresh := f.signingKey(log)
		if fresh.Equal(before) || !strings.Contains(said.String(), "new key") {
			t.Errorf("%s: %s", name, &said)
		}
		if again := f.signingKey(log); !again.Equal(fresh) {
			t.Errorf("%s: the new key is not kept", name)
		}
	}
	none := lastKnownFlags{}
	if none.signingKey(log).Equal(none.signingKey(log)) {
		t.Error("the same key without a folder")
	}
}

func TestLastKnownFlags(t *testing.T) {
	if o, err := (&lastKnownFlags{dir: "/run/quayside", maxAge: time.Hour}).options(); err != nil || o.File != "/run/quayside/cluster" || o.MaxAge != time.Hour {
		t.Errorf("%+v, %v", o, err)
	}
	if o, err := (&lastKnownFlags{maxAge: time.Hour}).options(); err != nil || o.File != "" {
		t.Errorf("%+v, %v", o, err)
	}
	if _, err := (&lastKnownFlags{dir: "/run", maxAge: time.Second}).options(); !errors.Is(err, errBadInput) {
		t.Errorf("%v", err)
	}
}

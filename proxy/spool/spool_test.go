package spool_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"quayside.io/proxy/exchange"
	"quayside.io/proxy/spool"
)

func newSpool(t *testing.T, size int64) (*spool.Spool, string) {
	t.Helper()
	dir := t.TempDir()
	s, err := spool.New(spool.Options{Dir: dir, Size: size})
	if err != nil {
		t.Fatal(err)
	}
	return s, dir
}

func create(t *testing.T, s *spool.Spool) *spool.File {
	t.Helper()
	f, err := s.Create()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFileKeepsWhatIsWritten(t *testing.T) {
	s, dir := newSpool(t, 1<<20)
	f := create(t, s)
	defer f.Close()
	want := bytes.Repeat([]byte("0123456789abcdef"), 8<<10)
	for rest := want; len(rest) > 0; rest = rest[min(1000, len(rest)):] {
		if _, err := f.Write(rest[:min(1000, len(rest))]); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // as often as one likes
		got, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<30))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes came back, %v", len(got), err)
		}
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		t.Errorf("the file has a name: %v %v", names, err)
	}
}

// All files together hold what they may, and not a byte more. What is closed makes
// room.
func TestBound(t *testing.T) {
	s, _ := newSpool(t, 256<<10)
	a, b := create(t, s), create(t, s)
	piece := make([]byte, 64<<10)
	for range 3 {
		if _, err := a.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Write(piece[:1]); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Write(piece); !errors.Is(err, exchange.ErrNoRoom) {
		t.Errorf("beyond the bound: %v", err)
	}
	if _, err := b.Write(piece[:len(piece)-1]); err != nil {
		t.Errorf("up to the bound: %v", err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Write(piece); err != nil {
		t.Errorf("after a file was closed: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	c := create(t, s)
	defer c.Close()
	if _, err := c.Write(make([]byte, 256<<10)); err != nil {
		t.Errorf("when all were closed: %v", err)
	}
}

func TestManyAtOnce(t *testing.T) {
	const size = 1 << 20
	s, _ := newSpool(t, size)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 20 {
				f, err := s.Create()
				if err != nil {
					t.Error(err)
					return
				}
				for range 8 {
					if _, err := f.Write(make([]byte, 50_000)); err != nil && !errors.Is(err, exchange.ErrNoRoom) {
						t.Error(err)
					}
				}
				f.Close()
			}
		})
	}
	group.Wait()
	f := create(t, s)
	defer f.Close()
	if _, err := f.Write(make([]byte, size)); err != nil {
		t.Errorf("there is less room than before: %v", err)
	}
}

// A folder that cannot be written to is known before anybody needs it.
func TestNoFolder(t *testing.T) {
	_, err := spool.New(spool.Options{Dir: filepath.Join(t.TempDir(), "none"), Size: 1})
	if !errors.Is(err, exchange.ErrStorage) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// A disk that is full says so, and others may still write.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=128k"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("a small disk cannot be mounted, which needs root: %v", err)
		}
		t.Skipf("a small disk cannot be mounted, which needs root: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	s, err := spool.New(spool.Options{Dir: dir, Size: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	a := create(t, s)
	if _, err := a.Write(make([]byte, 256<<10)); !errors.Is(err, exchange.ErrStorage) || !errors.Is(err, unix.ENOSPC) {
		t.Errorf("got %v", err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	b := create(t, s)
	defer b.Close()
	if _, err := b.Write(make([]byte, 64<<10)); err != nil {
		t.Errorf("after that: %v", err)
	}
}

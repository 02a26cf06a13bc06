package spool

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"

	"quayside.io/proxy/exchange"
)

// step is what a file takes of the bound at once: a multiple of the blocks of any
// file system, so that what is counted is never less than what the disk holds.
const step = 64 << 10

// Options are what a Spool is made with.
type Options struct {
	// Dir is where the files are made; empty: the system's folder for such files.
	Dir string
	// Size bounds what all files hold together, in bytes.
	Size int64
}

// Spool makes files within a bound.
type Spool struct {
	options Options
	held    atomic.Int64 // bytes, in steps
	files   atomic.Int64
	full    atomic.Uint64 // writes for which there was no room
	failed  atomic.Uint64 // and those that the system refused
	written atomic.Uint64
}

// New returns a Spool whose folder can be written to.
func New(o Options) (*Spool, error) {
	s := &Spool{options: o}
	f, err := s.Create()
	if err != nil {
		return nil, err
	}
	return s, f.Close()
}

// Create returns an empty file. It must be closed.
func (s *Spool) Create() (*File, error) {
	f, err := os.CreateTemp(s.options.Dir, "quayside-body-") // for its owner only
	if err != nil {
		return nil, s.fail(err)
	}
	file := &File{spool: s, file: f}
	if runtime.GOOS == "windows" { // where a file that is open keeps its name
		file.name = f.Name()
	} else if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, s.fail(err)
	}
	s.files.Add(1)
	return file, nil
}

func (s *Spool) fail(err error) error {
	s.failed.Add(1)
	return fmt.Errorf("%w: %w", exchange.ErrStorage, err)
}

// File is one file. Its methods are not to be called at once, save ReadAt with
// itself.
type File struct {
	spool *Spool
	file  *os.File
	name  string // to be removed by Close; empty where it is gone already
	size  int64
	taken int64 // of the spool
}

// Write implements io.Writer. It fails with exchange.ErrNoRoom where there is none,
// and with exchange.ErrStorage where the disk is full or broken.
func (f *File) Write(p []byte) (int, error) {
	s := f.spool
	if need := (f.size + int64(len(p)) + step - 1) / step * step; need > f.taken {
		more := need - f.taken
		if s.held.Add(more) > s.options.Size {
			s.held.Add(-more)
			s.full.Add(1)
			return 0, exchange.ErrNoRoom
		}
		f.taken = need
	}
	n, err := f.file.Write(p)
	f.size += int64(n)
	s.written.Add(uint64(n))
	if err != nil {
		return n, s.fail(err)
	}
	return n, nil
}

// ReadAt implements io.ReaderAt.
func (f *File) ReadAt(p []byte, at int64) (int, error) { return f.file.ReadAt(p, at) }

// Close ends the file, and what it held is free.
func (f *File) Close() error {
	err := f.file.Close()
	if f.name != "" {
		err = errors.Join(err, os.Remove(f.name))
		f.name = ""
	}
	f.spool.held.Add(-f.taken)
	f.spool.files.Add(-1)
	f.taken = 0
	return err
}

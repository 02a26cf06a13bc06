package cluster

import (
	"io/fs"
	"os"
	"time"
)

// fileStamp is what the kernel says of a file, whose text need not be read where that
// is the same. The zero value equals no file's.
type fileStamp struct {
	info    fs.FileInfo
	changed time.Time // when the file or its name last changed (ctime), which no program can set
	read    time.Time // when this was asked
}

// The kernel's clock for files ticks up to a hundred times a second, that of some
// file systems once in two. What was written that shortly before it was read may be
// written again within the tick.
const (
	fineTick   = 100 * time.Millisecond
	coarseTick = 4 * time.Second
)

// stampOf returns the stamp of a file, the zero value if there is none to rely on.
func stampOf(name string, now time.Time) fileStamp {
	info, err := os.Stat(name)
	if err != nil {
		return fileStamp{}
	}
	return fileStamp{info, changeTime(info), now}
}

// isSafe reports whether the file was left alone for so long before it was read that a
// change since then has another stamp.
func (s fileStamp) isSafe() bool {
	if s.info == nil || s.changed.IsZero() {
		return false
	}
	tick := coarseTick
	if s.changed.Nanosecond() != 0 {
		tick = fineTick
	}
	return s.read.Sub(s.changed) > tick
}

// same reports whether two stamps are of the same text.
func (s fileStamp) same(other fileStamp) bool {
	return other.info != nil && os.SameFile(s.info, other.info) && s.info.Size() == other.info.Size() &&
		s.info.ModTime().Equal(other.info.ModTime()) && s.changed.Equal(other.changed)
}
